"""SWE-agent trajectories (nebius): an issue to solve, then another agent's steps.

Only the issue is asked: what follows is what that agent saw in its shell. Many attempts stand at
one issue, so the first of each is taken. The system turn has its words in `system_prompt`.
"""

from app.files.prompt_records import kind_of
from app.sources.contract import Conversation, Message, Mode, Recipe, Row, SkippedError, SkipReason
from app.sources.turns import identity, listed


def read(row: Row) -> Conversation:
    turns = [
        _message(turn, f"trajectory[{number}]")
        for number, turn in enumerate(listed(row, "trajectory"))
    ]
    return Conversation(turns, None, identity(row, "instance_id"))


def _message(turn: object, place: str) -> Message:
    if not isinstance(turn, dict):
        raise SkippedError(SkipReason.BAD_SCHEMA, f"{place} is {kind_of(turn)}, not an object")
    text = turn.get("text")
    return {
        "role": turn.get("role"),
        "content": turn.get("system_prompt") if text is None else text,
    }


RECIPE = Recipe(
    name="swe_agent_trajectories",
    about="SWE-agent trajectories: one prompt for each issue",
    columns=frozenset({"instance_id", "trajectory"}),
    read=read,
    mode=Mode.FIRST_USER,
    is_one_per_id=True,
)
