"""Messages of a real service: one per begin, end and last end, whoever is killed when."""

import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from app.core.conditions import ConditionKind
from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver, receiving
from tests.process.case_run import SHORT_TICK, CaseRun
from tests.process.run_process import wait_for
from tests.process.serving import serving

STALLED = str(ConditionKind.STALLED)
N_ROWS = 4
pytestmark = pytest.mark.slow


def prepared(run: CaseRun, receiver: Receiver) -> CaseRun:
    run.environment = {
        **SHORT_TICK,
        "LONGWATCH_SNAPSHOT_S": "0.5",
        "LONGWATCH_NOTIFY_URL": receiver.url,
        "LONGWATCH_NOTIFY_ALLOW": "127.0.0.1",
    }
    run.run_lines = "stall_after_s = 2"
    run.write_spec()
    run.write_rows([f"a{n}" for n in range(N_ROWS)])
    return run


def heard(receiver: Receiver, event: str, n: int = 1) -> Callable[[], bool]:
    return lambda: sum(each["event"] == event for each in receiver.heard) >= n


def once_each(receiver: Receiver) -> dict[str, tuple[str, str]]:
    """Return kind and event by id; a message that came again must be the same one."""
    by_id: dict[str, str] = {}
    for each in receiver.heard:
        told = json.dumps(each, sort_keys=True)
        assert by_id.setdefault(each["id"], told) == told
    found = {identity: json.loads(told) for identity, told in by_id.items()}
    return {identity: (each["kind"], each["event"]) for identity, each in found.items()}


def test_kills_between_make_no_message_more_and_none_less(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """Killed with a message waiting for its second try, again with it told, then to the end."""
    simulator.script({"*": ["hang"]})
    with receiving("500") as receiver:
        prepared(run, receiver).start()
        wait_for(heard(receiver, "begin"), "the first try")
        run.kill_all()
        simulator.script({"*": ["ok delay=45"]})
        run.start()
        wait_for(heard(receiver, "begin", 2), "the second try")
        run.wait_told(1)
        run.kill_all()
        run.start()
        wait_for(heard(receiver, "finished"), "the end of the run")
        assert run.wait() == 0, run.log_tail()

        told = once_each(receiver)
        of_stalls = [event for kind, event in told.values() if kind == STALLED]
        assert of_stalls == ["begin", "end"] * (len(of_stalls) // 2)
        assert list(told.values()).count(("finished", "finished")) == 1
        entries = [deed for deed in run.deeds() if deed.event == STALLED]
        assert len(entries) == len(of_stalls) >= 2
        assert [each["id"] for each in receiver.heard].count(receiver.heard[0]["id"]) == 2
        assert "a-secret" not in run.log() + run.printed()
        assert "a-secret" not in "".join(deed.detail for deed in run.deeds())


def test_a_command_is_told_too_and_a_hanging_webhook_does_not_hold_the_end_up(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    out = run.folder / "told"
    with receiving("hang") as receiver:
        prepared(run, receiver)
        run.environment = {
            **run.environment,
            "LONGWATCH_NOTIFY_COMMAND": f"/bin/sh -c 'cat >> {out}; echo >> {out}'",
        }
        simulator.script({"*": ["ok"]})
        assert run.to_the_end() == 0, run.log_tail()
        told = [json.loads(line) for line in out.read_text().splitlines() if line]
        (last,) = [each for each in told if each["event"] == "finished"]
        assert last["sentence"].startswith(f"finished: {N_ROWS} answers; in ")
        assert receiver.heard[0] in told


def test_the_living_service_sends_the_test_and_says_what_came_of_it(
    run: CaseRun,
) -> None:
    with receiving("500") as receiver, serving(prepared(run, receiver)):
        bad, good = run.ask("notify-test"), run.ask("notify-test")
    assert (bad.returncode, good.returncode) == (1, 0)
    assert "not delivered, HTTP 500" in bad.stdout
    assert good.stdout == f"webhook 127.0.0.1:{receiver.port}: delivered, HTTP 200\n"
    assert [each["event"] for each in receiver.heard] == ["test", "test"]
    assert receiver.heard[0]["page"].startswith("http://127.0.0.1:")


def test_a_report_of_a_real_run_judges_its_ends(run: CaseRun, simulator: SimulatorThread) -> None:
    run.environment = {**SHORT_TICK, "LONGWATCH_SNAPSHOT_S": "0.2"}
    run.concurrency = 4
    run.write_spec()
    simulator.script({"*": ["ok with 50 output tokens, delay=0.1"]})
    run.write_rows([f"a{n}" for n in range(800)])
    run.start()
    assert run.wait() == 0, run.log_tail()

    drawing = run.folder / "drawn.svg"
    told = run.ask("report", "--svg", str(drawing))
    assert told.returncode == 0, told.stderr
    value = json.loads(run.ask("report", "--json").stdout)

    assert "finished" in told.stdout.splitlines()[0]
    assert "800 ok" in told.stdout
    ElementTree.fromstring(drawing.read_text())  # noqa: S314 - our own
    verdict = value["verdict"]
    assert verdict["n_shown"] > 10
    by_share = {each["work_ratio"]: each["error_ratio"] for each in verdict["marks"]}
    assert by_share[0.75] is not None
    assert abs(by_share[0.75]) < 1.0
    assert value["active_s"] > 15
    assert value["paused_s"] == 0
    mean = value["mean_tokens_per_s"]
    assert mean == pytest.approx(800 * 50 / value["active_s"], rel=0.1)
