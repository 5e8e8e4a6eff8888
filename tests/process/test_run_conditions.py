"""Each condition of a whole run with real processes: in API, `/metrics`, page, message; its end.

Those with cases of their own (stalled, and the three of the ledger) are in `test_cases_quiet` and
`test_cases_ledger`. *Not served* makes no message: it says that there is no service, and without
one nobody sends any; whoever reads the ledger says it (`status`, and the pages of another service).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.core.conditions import ConditionKind
from app.ledger import workers
from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver
from tests.process import slow_storage
from tests.process.case_run import HANG_S, SHORT_TICK, CaseRun
from tests.process.condition_eyes import Eyes, heard_by
from tests.process.run_process import wait_for
from tests.process.serving import run_of, serving, submission
from tests.process.test_cases_storage import small_disk

WAITING = (str(ConditionKind.WAITING_FOR_SERVER), "")
PAUSED = (str(ConditionKind.ALL_PAUSED), "")
CHANGED = (str(ConditionKind.SERVER_CHANGED), "")
DISK_LOW = (str(ConditionKind.DISK_LOW), "")
STORAGE_SLOW = (str(ConditionKind.STORAGE_SLOW), "")
STALLED = (str(ConditionKind.STALLED), "")
CHANGE = "model_path /models/toy -> /models/other, tokenizer_path /models/toy -> /models/other"
pytestmark = pytest.mark.slow


def _kept(client: Any) -> int:
    return int(run_of(client)["samples"]["kept"])


def _waits(run: CaseRun) -> bool:
    """Return whether the worker has said that its server is away."""
    with run.ledger() as ledger:
        return all(each.waiting_since for each in workers.living(ledger))


def test_a_server_away_and_a_pause_are_told_of_and_a_hiccup_is_not(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    simulator.script({"*": ["ok delay=0.2"]})
    run.write_rows([f"a{n}" for n in range(5_000)])
    patience = {"LONGWATCH_WAITING_AFTER_S": "8"}
    with serving(run, heard_by(receiver) | patience) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        wait_for(lambda: _kept(client) >= 8, "some answers", HANG_S)
        simulator.stop()
        wait_for(lambda: _waits(run), "the worker to wait", HANG_S)
        assert eyes.look() == set()
        simulator.start()
        before = _kept(client)
        wait_for(lambda: _kept(client) > before, "answers after the hiccup", HANG_S)
        assert eyes.look() == set()
        assert receiver.heard == []

        simulator.stop()
        eyes.wait(WAITING)
        simulator.start()
        eyes.wait(WAITING, gone=True)
        eyes.assert_told([WAITING])

        assert client.post("/runs/test/pause", json={}).is_success
        eyes.wait(PAUSED)
        assert client.post("/runs/test/resume", json={}).is_success
        eyes.wait(PAUSED, gone=True)
        eyes.assert_told([WAITING, PAUSED])
    assert eyes.seen == {WAITING, PAUSED}


def test_a_disk_that_is_low_is_told_of_until_it_has_room_again(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    simulator.script({"*": ["ok delay=0.2"]})
    run.write_rows([f"a{n}" for n in range(2_000)])
    low = {"LONGWATCH_DISK_LOW_BYTES": "4000000", "LONGWATCH_DISK_STOP_BYTES": "0"}
    try:
        with small_disk(run.output, "8m"), serving(run, heard_by(receiver) | low) as client:
            assert client.post("/runs", json=submission(run)).status_code == 201
            eyes = Eyes(client, receiver)
            wait_for(lambda: _kept(client) >= 1, "an answer", HANG_S)
            assert eyes.look() == set()
            (run.output / "filler").write_bytes(bytes(5_000_000))
            eyes.wait(DISK_LOW)
            (run.output / "filler").unlink()
            eyes.wait(DISK_LOW, gone=True)
            eyes.assert_told([DISK_LOW])
    finally:
        run.close()


def test_slow_storage_is_a_condition_once_it_lasts(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    simulator.script({"*": ["ok delay=0.1"]})
    run.environment = {
        **SHORT_TICK,
        "LD_PRELOAD": str(slow_storage.build(tmp_path)),
        "SLOW_STORAGE": str(slow),
        "LONGWATCH_STORAGE_SLOW_AFTER_S": "2.5",
    }
    run.write_rows([f"a{n}" for n in range(4_000)])
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        wait_for(lambda: _kept(client) >= 4, "some answers", HANG_S)
        (slow / "sync").touch()
        eyes.wait(STORAGE_SLOW)
        (slow / "sync").unlink()
        eyes.wait(STORAGE_SLOW, gone=True)
        eyes.assert_told([STORAGE_SLOW])


def _as_another(simulator: SimulatorThread, **facts: str) -> None:
    simulator.stop()
    simulator.set(**facts)
    simulator.start()


def test_another_model_pauses_the_run_with_the_exact_difference(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    simulator.script({"*": ["ok delay=0.3"]})
    run.write_rows([f"m{n}" for n in range(200)])
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        wait_for(lambda: _kept(client) >= 8, "some answers", HANG_S)
        _as_another(simulator, model_path="/models/other")
        eyes.wait(CHANGED)

        assert eyes.run["state"] == "paused"
        assert eyes.run["reason"] == f"server changed: {simulator.url} {CHANGE}"
        assert CHANGE in eyes.run["needs_you"][0]
        wait_for(lambda: run_of(client)["in_flight_requests"] == 0, "nothing in flight", HANG_S)
        n_sent = simulator.stats.generate_calls
        # who resumes it all the same sees it held again, and nothing is sent
        assert client.post("/runs/test/resume", json={}).is_success
        wait_for(lambda: len(eyes.told().get(CHANGED, [])) >= 3, "held again", HANG_S)
        assert simulator.stats.generate_calls == n_sent

        answer = client.post("/runs", json={**submission(run), "accept_changes": True})
        assert answer.is_success, answer.text
        eyes.wait(CHANGED, gone=True)
        wait_for(lambda: simulator.stats.generate_calls > n_sent, "more to be sent", HANG_S)
        assert run_of(client)["state"] == "running"
        eyes.assert_told([CHANGED], n_times=2)


def test_another_model_stops_the_run_where_nothing_is_to_be_paused(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"*": ["ok delay=0.3"]})
    run.run_lines = "auto_pause = false"
    run.write_spec()
    run.write_rows([f"m{n}" for n in range(200)])
    run.start()
    run.wait_kept(8)
    _as_another(simulator, weight_version="other")

    assert run.wait(HANG_S) == 1, run.log_tail()
    said = run.printed()
    assert "The run is stopped: halted: server changed: " in said
    assert "then: longwatch resume; or keep this one: start the run again with" in said


@pytest.mark.parametrize("is_kept", [True, False])
def test_in_the_foreground_another_model_is_waited_for_with_words_of_what_to_do(
    run: CaseRun, simulator: SimulatorThread, *, is_kept: bool
) -> None:
    simulator.script({"*": ["ok delay=0.2"]})
    rows = [f"m{n}" for n in range(60)]
    run.write_rows(rows)
    run.start()
    run.wait_kept(8)
    _as_another(simulator, model_path="/models/other")
    go_on = (
        "Start the one that the run began with, then: longwatch resume test; or keep this one:"
        " start the run again with --accept-changes."
    )
    wait_for(lambda: f"{CHANGE}. Nothing is sent to it. {go_on}" in run.printed(), "words", HANG_S)
    assert run.is_alive()
    if is_kept:
        with run.beside("--accept-changes") as follower:
            assert run.wait(HANG_S) == 0, run.log_tail()
            assert follower.wait(HANG_S) == 0
    else:
        _as_another(simulator, model_path="/models/toy")
        run.order("resume", "test")
        assert run.wait(HANG_S) == 0, run.log_tail()
    run.assert_whole(rows)


def _stalling(run: CaseRun, simulator: SimulatorThread, receiver: Receiver) -> None:
    """Start a run of which nothing comes, and wait until that was told."""
    simulator.script({"*": ["hang"]})
    run.environment = {**SHORT_TICK, **heard_by(receiver)}
    run.run_lines = "stall_after_s = 2"
    run.write_spec()
    run.write_rows([f"a{n}" for n in range(4)])
    run.start()
    wait_for(lambda: receiver.heard, "the message of its begin", HANG_S)


def _of_stall(receiver: Receiver) -> list[Mapping[str, Any]]:
    return [each for each in receiver.heard if each["kind"] == STALLED[0]]


def test_a_condition_is_over_with_a_run_that_is_stopped(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    _stalling(run, simulator, receiver)
    run.order("stop")
    assert run.wait(HANG_S) == 3, run.log_tail()

    begin, end = _of_stall(receiver)
    assert (begin["event"], end["event"]) == ("begin", "end")
    assert end["sentence"].startswith("over after ")
    assert [each["event"] for each in receiver.heard].count("stopped") == 1


def test_a_condition_is_over_with_a_run_that_ends_just_after_a_restart(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    """It has begun under a service that was killed; the next waits a while before it believes."""
    _stalling(run, simulator, receiver)
    run.wait_told(1)
    run.kill_all()
    simulator.script({"*": ["ok"]})
    run.start()
    assert run.wait(HANG_S) == 0, run.log_tail()
    run.start()  # a service that finds nothing to do
    assert run.wait(HANG_S) == 0, run.log_tail()

    begin, end = _of_stall(receiver)
    assert (begin["event"], end["event"]) == ("begin", "end")
    assert end["sentence"].endswith(": the run is finished")
