"""The figures are true: page, frames, API, `/metrics`, ledger and simulator agree at any instant.

A service with its workers and a simulator, each a process, in a run with pauses, a changed
concurrency, failing rows, a goal, a budget, killed workers, a server that dies and comes back, and
a service that is left and started again. Page, API and exposition of one tick must be equal; what
they say was so at T is what the ledger's file, read by the test itself, held then.
"""

from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from tests.process.ledger_watch import COLUMNS, MONOTONE, STATES, TOKENS, Held, Row, Watch
from tests.process.run_process import RunProcess, SimulatorProcess
from tests.process.serving import serving, submission
from tests.process.shown import Json
from tests.process.true_scene import Instant, Scene, acts

NAMES = ("B1_goal", "B3_budget", "B2_a", "B4_b", "B5_c", "B6_d", "B7_e", "B8_f")
CONCURRENCY, SECTION_ROWS = 16, 400
SIMULATOR = ("--incremental", "--no-log-requests", "--mean-tokens", "500", "--cap-tokens", "4000")
# the moment that is shown is cut to milliseconds, and the run's own state is read just before it
BEFORE_S = 0.25
LATEST_S = 1.0
N_INSTANTS = 2  # random ones, after each act
TIME_FACTOR = "2"


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_all_figures_are_true(tmp_path: Path) -> None:
    simulator = SimulatorProcess((*SIMULATOR, "--time-factor", TIME_FACTOR))
    simulator.start()
    run = RunProcess(
        tmp_path,
        simulator.url,
        concurrency=CONCURRENCY,
        max_new_tokens=1_000,
        run_lines="max_attempts = 2",
        spec_lines="\n".join(_section(name) for name in NAMES),
    )
    for name in NAMES:
        marks = {3: " @@bad", 5: " @@torn", 7: " @@doomed"}
        texts = [f"{name} {n}{marks.get(n % 9, '')}" for n in range(SECTION_ROWS)]
        run.write_prompts(name, texts)
    watch = Watch(run.home / "ledger.db", simulator)
    scene = Scene(run=run, simulator=simulator, watch=watch, random=Random(N_INSTANTS))
    scene.tell_script()
    try:
        lost = _live_through(scene)
    finally:
        run.close()
        simulator.kill()
    assert len(scene.instants) >= 20
    last = scene.instants[-1].run
    assert last["samples"]["failed"] > 0
    assert last["samples"]["truncated"] > 0
    assert last["tokens"]["wasted_tokens"] > 0
    assert lost <= watch.lost_by(scene.instants[-1].at_s)
    for instant in scene.instants:
        assert_ledger_held(watch, instant)
        assert_as_sent(watch, instant, lost)


def _section(name: str) -> str:
    """Return the partition's part of the spec: two of them end before their input does."""
    ends = {"B1_goal": "max_samples = 25", "B3_budget": "token_budget = 20000"}
    return f"[partition.{name}]\n{ends.get(name, '')}"


def _live_through(scene: Scene) -> int:
    """Live the lives of the service; return how many sent tokens were lost by all deaths."""
    lost = 0
    with ExitStack() as stack:
        for number, life in enumerate(acts(scene)):
            with serving(scene.run) as client:
                if not number:
                    assert client.post("/runs", json=submission(scene.run)).status_code == 201
                    stack.enter_context(scene.watch.reading())
                scene.enter(client)
                scene.go_on()
                lost = scene.rest()
                if not number:  # nothing has died so far: not one token that was sent is missing
                    assert lost == 0
                scene.go_on()
                for act in life:
                    act()
                    scene.look_at_random_instants(N_INSTANTS)
                lost = scene.rest()
                scene.go_on()
                # nothing died meanwhile: not one more is missing
                assert scene.rest() == lost
    return lost


def assert_ledger_held(watch: Watch, instant: Instant) -> None:
    """What was shown as of T is what the ledger held between T and when it was seen."""
    end_s = min(instant.seen_s, instant.at_s + LATEST_S)
    held = watch.held_between(instant.at_s, max(end_s, instant.at_s + 0.001))
    before = watch.held_between(instant.at_s - BEFORE_S, instant.at_s)
    assert instant.run["state"] in {each.run_state for each in (*before, *held)}
    for each in instant.run["partitions"]:
        name, shown = each["name"], _row_of(each)
        rows = [look.partitions[name] for look in held]
        assert shown in rows or _is_between(shown, rows), (name, shown, rows)
        assert each["in_flight_requests"] in {look.in_flight.get(name, 0) for look in held}
        assert each["concurrency_requests"] in {_concurrency(look, name) for look in held}


def _row_of(each: Json) -> Row:
    values = (
        *(each["state"], each["own_concurrency_requests"]),
        *(each["token_budget_tokens"], each["goal_samples"]),
        *(each["samples"][state.removeprefix("n_")] for state in STATES),
        *(each["tokens"][name] for name in TOKENS),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _is_between(shown: Row, rows: list[Row]) -> bool:
    """Return whether a row that stood too shortly to be seen fits between those that were."""
    return all(
        rows[0][column] <= value <= rows[-1][column]
        if column in MONOTONE
        else value in {row[column] for row in rows}
        for column, value in shown.items()
    )


def _concurrency(look: Held, name: str) -> int | None:
    own = look.partitions[name]["own_concurrency"]
    return own if own is not None else look.shares.get(name)


def assert_as_sent(watch: Watch, instant: Instant, lost_at_last: int) -> None:
    """All that the server sent is there, but for what came since the last ticks, and was lost."""
    received = instant.run["tokens"]["received_tokens"]
    if instant.sent_tokens is not None:
        assert received <= instant.sent_tokens
    since_s = watch.recorded_s(instant.at_s)
    lost = min(watch.lost_by(instant.at_s), lost_at_last)
    least = watch.sent_before(since_s) - lost
    assert received >= least, (received, least, instant.at_s - since_s)
