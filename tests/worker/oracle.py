"""What the answers of a test must be: the simulated model is a function of the prompt."""

from app.simulator.answers import answer
from app.simulator.server import SimulatorThread
from tests.stage import Stage


def assert_true_answers(stage: Stage, simulator: SimulatorThread) -> None:
    """Check that every sample has ended and is what one uninterrupted request yields."""
    found = stage.answers()
    assert sorted(found) == sorted(stage.keys)
    for key, prompt in zip(stage.keys, stage.prompts.values(), strict=True):
        due = answer(prompt, simulator.settings.lengths, stage.max_new_tokens)
        assert found[key]["output_ids"] == due, key


def twice_made_tokens(stage: Stage, simulator: SimulatorThread) -> int:
    """Return how many tokens the server has made that are in no answer."""
    return simulator.stats.generated_tokens - stage.partition().tokens.kept
