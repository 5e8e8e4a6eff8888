"""Cases prg-03 and srv-01 with real processes: a server that is healthy and makes nothing."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx
import pytest

from app.core.conditions import ConditionKind
from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver
from tests.process.accounts import assert_books_balance
from tests.process.case_run import SHORT_TICK, CaseRun
from tests.process.condition_eyes import heard_by, watching
from tests.process.run_process import wait_for


def is_stalled(figures: dict[str, Any]) -> bool:
    return any(one["kind"] == ConditionKind.STALLED for one in figures["conditions"])


def quiet_s(figures: dict[str, Any]) -> float:
    """Return the age of the last token, by the figures themselves."""
    at, last = (datetime.fromisoformat(figures[name]) for name in ("at", "last_token_at"))
    return (at - last).total_seconds()


def first(run: CaseRun, holds: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
    """Return the first figures for which it holds."""
    found: list[dict[str, Any]] = []

    def look() -> bool:
        found[:] = [run.figures()]
        return holds(found[0])

    wait_for(look, what)
    return found[0]


@pytest.mark.slow
@pytest.mark.alone
def test_prg_03_the_average_since_the_start_hides_no_stall(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    stall_s = 20
    simulator.script({"*": ["ok with 50 output tokens, delay=0.02"]})
    run.concurrency = 4
    run.run_lines = f"stall_after_s = {stall_s}"
    run.write_spec()
    run.write_rows([f"a{n}" for n in range(500)])
    run.start()
    run.wait_kept(1)
    before = first(run, lambda each: each["speed_tokens_per_s"] is not None, "a speed")
    assert not is_stalled(before)
    run.wait_kept(300)
    simulator.script({"*": ["hang"]})

    stalled = first(run, is_stalled, "stalled")
    later = first(run, lambda each: quiet_s(each) >= 1.25 * stall_s, "a quarter more")

    assert quiet_s(stalled) >= stall_s
    for figures in (stalled, later):
        assert is_stalled(figures)
        assert figures["speed_tokens_per_s"] == 0
        assert figures["time_left_s"] is None
        assert figures["time_left_unknown_because"] == "stalled"
        assert figures["last_token_at"] == stalled["last_token_at"]
        (partition,) = figures["partitions"]
        assert partition["speed_tokens_per_s"] == 0
        assert partition["time_left_s"] is None
    assert quiet_s(later) > quiet_s(stalled)
    assert later["best_tokens_per_s"] is None


@pytest.mark.slow
@pytest.mark.alone
def test_srv_01_health_is_green_while_generation_is_dead(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    stall_s, timeout_s = 10, 25
    simulator.script({"@@hang": ["hang", "ok"], "*": ["ok"]})
    run.concurrency = 2
    run.run_lines = f"stall_after_s = {stall_s}\nrequest_timeout_s = {timeout_s}"
    run.write_spec()
    run.write_rows(["a1 @@hang", "a2 @@hang", "a3", "a4"])
    run.environment, run.has_pages = {**SHORT_TICK, **heard_by(receiver)}, True
    run.start()
    wait_for(lambda: simulator.stats.in_flight, "something in flight")
    began_at = time.monotonic()

    key = (str(ConditionKind.STALLED), "")
    with watching(run, receiver) as eyes:
        eyes.wait(key)
    figures = eyes.run

    assert stall_s - 1 <= time.monotonic() - began_at < timeout_s
    assert httpx.get(f"{simulator.url}/health", trust_env=False).status_code == 200
    assert figures["in_flight_requests"] > 0
    # what was claimed stands in the ledger at once, what is in flight with the worker's next tick
    assert figures["samples"]["running"] >= figures["in_flight_requests"]
    assert figures["servers"][0]["away_since"] is None
    assert run.wait() == 0, run.log_tail()
    assert run.states() == dict.fromkeys(("a1", "a2", "a3", "a4"), "ok")
    stalls = [deed.detail for deed in run.deeds() if deed.event == ConditionKind.STALLED]
    assert stalls[0].startswith("over after")
    eyes.assert_messages([key])
    assert_books_balance(run)
