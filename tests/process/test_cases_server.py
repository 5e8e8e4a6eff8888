"""Cases srv-15, srv-24, srv-25, prg-02, inp-11 and inp-13 with real processes."""

import base64
import json

import httpx
import pytest

from app.core.estimate import Unknown
from app.figures import RunFigures, from_json
from app.simulator.server import SimulatorThread
from tests.cases.settings import calls
from tests.process.accounts import assert_books_balance
from tests.process.case_run import PARTITION, CaseRun
from tests.process.run_process import wait_for

NEW = ("/server_info", "/model_info")
OLD = ("/get_server_info", "/get_model_info")


@pytest.mark.parametrize(
    "gone", [OLD, NEW, (*OLD, *NEW, "/v1/models")], ids=["new names", "old names", "no route"]
)
def test_srv_24_info_routes_under_other_names(
    run: CaseRun, simulator: SimulatorThread, gone: tuple[str, ...]
) -> None:
    simulator.script({"*": ["ok"]}, {path: [404, "Not Found"] for path in gone})
    run.write_rows(["a1", "a2"])

    assert run.to_the_end() == 0, run.log_tail()

    assert run.states() == {"a1": "ok", "a2": "ok"}
    run.assert_whole(["a1", "a2"])
    limits_unknown = "does not tell its limits: the context length is unknown"
    assert (limits_unknown in run.log_tail()) == (len(gone) > 2)


@pytest.mark.slow
def test_srv_25_a_server_that_still_loads_is_waited_for(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """Nobody listens, then it answers 503, then it serves; each time the counter is seen first."""
    simulator.script({"*": ["ok"]})
    simulator.stop()
    run.run_lines = "startup_wait_s = 120"
    run.write_spec()
    run.write_rows(["a1", "a2"])
    run.start()
    wait_for(lambda: run.log_tail().count("of 120 s") >= 2, "the counter while it refuses")
    assert run.n_runs() == 0

    simulator.set(unavailable=True)
    simulator.start()
    wait_for(lambda: "/health answers 503" in run.log_tail(), "the counter while it loads")
    assert run.n_runs() == 0
    assert simulator.stats.generate_calls == 0
    simulator.set(unavailable=False)

    assert run.wait(30) == 0, run.log_tail()
    assert calls(simulator) == {"a1": 1, "a2": 1}
    assert run.states() == {"a1": "ok", "a2": "ok"}


def assert_adds_up(figures: RunFigures) -> None:
    counts = figures.counts
    assert 0 <= figures.percent <= 100
    assert (figures.percent == 100) == (counts.pending + counts.running == 0)
    assert min(counts.pending, counts.running, counts.kept, counts.failed) >= 0
    for left in (figures.time_left, *(each.time_left for each in figures.partitions)):
        assert isinstance(left, Unknown) or left.low_s >= 0


@pytest.mark.slow
def test_prg_02_figures_add_up_in_every_look_while_a_partition_is_added(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """The partition is added by starting the same spec again, beside the living service."""
    simulator.script(
        {
            "@@flaky": [{"json": [500, {}]}, "cut mid_body", "ok"],
            # The service leaves after it: until it is aborted here, all can be looked at.
            "@@last": ["ok delay=600", "ok"],
            "*": ["ok delay=0.2"],
        }
    )
    rows = [f"a{n} @@flaky" if n % 5 == 0 else f"a{n}" for n in range(50)]
    added = [*rows[:-1], f"{rows[-1]} @@last"]
    run.run_lines = "max_attempts = 4"
    run.write_spec()
    run.write_rows(rows)
    run.start()
    totals: list[int] = []

    def look(least: int) -> bool:
        figures = from_json(run.figures())
        assert_adds_up(figures)
        totals.append(figures.counts.total)
        return figures.counts.kept >= least

    run.wait_kept(1)
    wait_for(lambda: look(10), "ten answers")
    assert_adds_up(from_json(json.loads(run.order("status", "--json"))))
    run.write_rows(added, "B3_added")
    with run.beside() as follower:
        wait_for(lambda: look(99) and simulator.stats.in_flight == 1, "all but the last answer")
        httpx.post(f"{simulator.url}/abort_request", json={"abort_all": True}, trust_env=False)
        assert run.wait() == 0, run.log_tail()
        assert follower.wait(30) == 0

    assert set(totals) == {50, 100}
    assert len(totals) > 10
    assert "new in this run: B3_added" in run.printed()
    assert_adds_up(from_json(json.loads(run.order("status", "--json"))))
    run.assert_whole(rows)
    run.assert_whole(added, "B3_added")
    assert_books_balance(run)


def test_inp_11_a_gzip_cut_short_starts_nothing(run: CaseRun, simulator: SimulatorThread) -> None:
    """Beside a partition that is whole, which must not run alone."""
    run.write_rows(["a1"], "B3_whole")
    path = run.folder / "prompts" / f"{PARTITION}.jsonl.gz"
    path.write_bytes(base64.b64decode(CUT))

    told = run.ask("run", str(run.spec), "--port", "0")

    assert told.returncode == 1
    assert told.stderr.startswith("error: ")
    assert told.stderr.count("\n") == 1
    assert str(path) in told.stderr
    assert run.n_runs() == 0
    assert not run.output.exists()
    assert simulator.stats.generate_calls == 0


# cut.jsonl.gz of the case: two members of two rows each, without the last 12 bytes
CUT = (
    "H4sIAAAAAAACA6tWykxRslJQSjdU0lFQyk0tLk5MTy0GikRXKxXl56SC5EqLU4tAssn5eSWpeSUgofy8VKXa2Fquaph2"
    "I5K0l5Tng7UDAFCmL4x+AAAAH4sIAAAAAAACA6tWykxRslJQSjdW0lFQyk0tLk5MTy0GikRXKxXl56SC5EqLU4tAssn5"
    "eSWpeSUgoZKMotRUpdrYWq5qmAEmJBmQll9a"
)


@pytest.mark.slow
def test_srv_15_the_clamped_limit_is_sent_on_every_attempt_and_recorded(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """A prompt of 4,000 ids in a context of 4,096, stopped and resumed in the midst of it."""
    simulator.set(context_length=4_096)
    simulator.script({"@@held": ["ok delay=3600", "ok"], "*": ["ok"]})
    run.max_new_tokens = 512
    run.write_spec()
    long = "v1 @@held ".ljust(3_983, "x")
    run.write_rows(["v2", long])
    run.start()
    wait_for(lambda: simulator.stats.in_flight == 1 and run.kept() == 1, "the long one in flight")
    run.order("stop")
    assert run.wait(30) == 3, run.log_tail()

    assert run.to_the_end() == 0, run.log_tail()

    limits = {line["id"]: line["max_new_tokens"] for line in run.lines()}
    assert limits["v2"] == 512
    assert 0 < limits["v1"] <= 96
    sent = [(each.n_input_ids, each.max_new_tokens) for each in simulator.stats.requests()]
    assert sent[1:] == [(4_000, limits["v1"])] * 2


@pytest.mark.slow
def test_inp_13_partitions_with_the_same_base_name_have_outputs_of_their_own(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    """The first file is also given under another spelling and as a symlink: it runs once."""
    simulator.script({"*": ["ok"]})
    for day, n_rows in (("day1", 2), ("day2", 3)):
        run.write_rows([f"{day}-{n}" for n in range(n_rows)])
        (run.folder / day).mkdir()
        (run.folder / "prompts" / f"{PARTITION}.jsonl").rename(run.folder / day / "part.jsonl")
    (run.folder / "link.jsonl").symlink_to(run.folder / "day1" / "part.jsonl")
    places = {
        "B1_one": "day1/part.jsonl",
        "B1_two": "day2/part.jsonl",
        "B1_again": "./day1/../day1/part.jsonl",
        "B1_link": "link.jsonl",
    }
    run.spec_lines = "\n".join(
        f'[partition.{name}]\nprompts = "{path}"' for name, path in places.items()
    )
    run.write_spec()

    assert run.to_the_end() == 0, run.log_tail()

    assert {each.name: each.counts.ok for each in run.partitions()} == {"B1_one": 2, "B1_two": 3}
    assert [len(run.lines(name)) for name in ("B1_one", "B1_two")] == [2, 3]
    assert simulator.stats.calls_total == 5
    assert run.log_tail().count("it is run once") == 2
