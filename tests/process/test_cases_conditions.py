"""Each condition of a partition with real processes: in API, `/metrics`, page, message; its end.

Cases srv-03, srv-11, srv-12 and srv-14. Those of a whole run are in `test_run_conditions` and, with
their cases, in `test_cases_quiet` and `test_cases_ledger`.
"""

import time
from typing import Any

import pytest

from app.core.conditions import ConditionKind
from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver
from tests.process.case_run import HANG_S, PARTITION, CaseRun
from tests.process.condition_eyes import Eyes, heard_by
from tests.process.run_process import wait_for
from tests.process.serving import run_of, serving, submission

EMPTY = {"gen": {"text": "", "output_ids": [2], "meta_info": {"completion_tokens": 1}}}


def part(run: dict[str, Any], name: str = PARTITION) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in run["partitions"] if each["name"] == name)
    return found


@pytest.mark.slow
def test_srv_11_empty_answers_pause_with_a_reason(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    simulator.script({"@@empty": [EMPTY | {"delay": 0.2}]})
    run.concurrency = 2
    run.run_lines = "empty_share_pause = 0.5\nempty_window = 20"
    run.write_spec()
    run.write_rows([f"z{n} @@empty" for n in range(60)])
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        eyes.wait((ConditionKind.MANY_EMPTY, PARTITION))
        wait_for(lambda: part(run_of(client))["state"] == "paused", "the pause", HANG_S)
        wait_for(lambda: part(run_of(client))["in_flight_requests"] == 0, "quiet", HANG_S)
        eyes.look()

        shown = part(eyes.run)
        n_sent = simulator.stats.calls_total
        assert shown["reason"].startswith("many empty: ")
        assert shown["samples"]["ok"] == shown["samples"]["failed"] == 0
        assert 20 <= shown["samples"]["empty"] <= 40
        assert any("many empty" in one for one in eyes.run["needs_you"])
        assert n_sent <= shown["samples"]["empty"] + 2, "an empty answer is not tried again"
        assert (ConditionKind.MANY_EMPTY, PARTITION) in eyes.look()

        # a person who knows better is not overruled at once
        assert client.post("/runs/test/resume", json={"partitions": [PARTITION]}).is_success
        wait_for(lambda: simulator.stats.calls_total > n_sent, "more to be sent", HANG_S)
        assert part(run_of(client))["state"] == "active"


@pytest.mark.slow
def test_srv_12_a_limit_that_cuts_every_answer_is_warned_of(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    """The case's 30 rows, and as many more, so that somebody can act on the warning."""
    simulator.script({"*": [{"fr": {"type": "length", "length": 128}, "delay": 0.5}]})
    run.max_new_tokens = 512
    run.run_lines = "truncated_window = 30\ntruncated_share = 0.5"
    run.write_spec()
    run.write_rows([f"d{n}" for n in range(100)])
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        wait_for(lambda: part(run_of(client))["samples"]["truncated"] >= 30, "30 rows", HANG_S)
        eyes.wait((ConditionKind.MANY_TRUNCATED, PARTITION))

        assert any("are truncated" in one for one in eyes.run["needs_you"])
        assert part(eyes.run)["samples"]["pending"] > 0
        eyes.assert_pill(PARTITION, ConditionKind.MANY_TRUNCATED)
        wait_for(lambda: run_of(client)["state"] == "finished", "the end", HANG_S)
        assert any("are truncated" in one for one in run_of(client)["needs_you"])
        eyes.assert_told([(ConditionKind.MANY_TRUNCATED, PARTITION)])  # over with its run
    assert {each.max_new_tokens for each in simulator.stats.requests()} == {512}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(400)
def test_srv_03_throughput_that_collapses_is_slow_and_nothing_fails(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    simulator.script(
        {"*": ["ok with 50 output tokens, delay=0.5 for first 200 rows, then delay=7"]}
    )
    run.concurrency = 8
    run.run_lines = "slow_ratio = 0.3\nslow_after_s = 30"
    run.write_spec()
    run.write_rows([f"k{n}" for n in range(400)])
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        wait_for(lambda: part(run_of(client))["samples"]["ok"] >= 190, "the fast rows", HANG_S)
        before = run_of(client)
        wait_for(lambda: part(run_of(client))["samples"]["ok"] >= 200, "the slow-down", HANG_S)
        slowed_at = time.monotonic()
        eyes.wait((ConditionKind.SLOW, PARTITION))
        assert time.monotonic() - slowed_at < 60

        shown = next(one for one in eyes.run["conditions"] if one["kind"] == ConditionKind.SLOW)
        assert 0.8 < shown["ratio"] < 1.0
        eyes.look()  # the page of the look before may be older than its condition
        eyes.assert_pill(PARTITION, ConditionKind.SLOW)
        kept: list[tuple[float, int]] = []
        ends: list[float] = []

        def a_minute_is_over() -> bool:
            now = run_of(client)
            kept.append((time.monotonic(), now["samples"]["kept"]))
            if now["time_left_s"]:
                ends.append(now["time_left_s"]["middle"])
            return time.monotonic() - slowed_at > 80

        wait_for(a_minute_is_over, "a whole window", 120)
        later = run_of(client)
        at_s, n_kept = kept[-1]
        began_s, n_before = next(one for one in kept if one[0] >= at_s - 60)
        real = (n_kept - n_before) * 50 / (at_s - began_s)
        assert abs(later["speed_tokens_per_s"] - real) <= 0.2 * real
        assert later["samples"]["failed"] == 0
        if before["time_left_s"]:  # before that there may be too little for any
            assert max(ends) >= 5 * before["time_left_s"]["middle"]

        simulator.script({"*": ["ok with 50 output tokens, delay=0.5"]})
        eyes.wait((ConditionKind.SLOW, PARTITION), gone=True)
        eyes.assert_told([(ConditionKind.SLOW, PARTITION)])


BAD_ROWS, GOOD_ROWS, WINDOW = 60, 100, 20
LOOPING = {
    "gen": {"output_ids": "[36]*400", "meta_info": {"completion_tokens": 400}},
    "delay": 0.25,
}
PROVOKED = {
    "B1_empty": (ConditionKind.MANY_EMPTY, EMPTY | {"delay": 0.25}),
    "B2_cut": (
        ConditionKind.MANY_TRUNCATED,
        {"fr": {"type": "length", "length": 9}, "delay": 0.25},
    ),
    "B3_loop": (ConditionKind.MANY_DEGENERATE, LOOPING),
    "B4_failing": (ConditionKind.FAILING, {"json": [400, {"message": "no"}], "delay": 0.25}),
    "B5_prompt": (
        ConditionKind.MANY_MISMATCHED,
        {"gen": {"meta_info": {"prompt_tokens": 3}}, "delay": 0.25},
    ),
}
DRAINED, BUDGETED = "B6_drained", "B7_budget"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_condition_of_a_partition_begins_and_ends_everywhere(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    """Bad rows, then good ones: what is said of the last twenty begins and ends."""
    script: dict[str, Any] = {f"@@{name}": [action] for name, (_, action) in PROVOKED.items()}
    simulator.script(
        {
            **script,
            "@@slow": ["ok delay=4"],
            "@@spent": ["ok with 50 output tokens, delay=0.25"],
            "*": ["ok delay=0.25"],
        }
    )
    windows = ("failing", "truncated", "suspect", "empty", "mismatch")
    run.run_lines = "\n".join(
        [*(f"{one}_window = {WINDOW}" for one in windows), "auto_pause = false", "max_attempts = 1"]
    )
    names = [*PROVOKED, DRAINED, BUDGETED]
    lines = [f'[partition.{name}]\nclass = "short"\nconcurrency = 3' for name in names]
    run.spec_lines = "\n".join([*lines, "token_budget = 2000"])
    run.max_new_tokens = 500
    run.write_spec()
    for name in PROVOKED:
        bad = [f"b{n} @@{name}" for n in range(BAD_ROWS)]
        run.write_rows([*bad, *(f"g{n}" for n in range(GOOD_ROWS))], name)
    run.write_rows([f"s{n} @@slow" for n in range(100)], DRAINED)
    run.write_rows([f"m{n} @@spent" for n in range(400)], BUDGETED)
    keys = [(str(kind), name) for name, (kind, _) in PROVOKED.items()]
    drained = (str(ConditionKind.DRAINING), DRAINED)
    reached = (str(ConditionKind.BUDGET_REACHED), BUDGETED)
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        wait_for(lambda: part(run_of(client), DRAINED)["in_flight_requests"] == 3, "slow ones")
        assert client.post("/runs/test/drain", json={"partitions": [DRAINED]}).is_success

        def all_seen() -> bool:
            eyes.look()
            return {*keys, drained, reached} <= eyes.seen

        try:
            wait_for(all_seen, "each of them", 90)
        except AssertionError as error:
            missing = {*keys, drained, reached} - eyes.seen
            raise AssertionError(f"{missing} of {eyes.run}") from error
        wait_for(lambda: "Budget used" in (eyes.look() and eyes.pills[BUDGETED]), "its pill", 30)
        budget = {"partition": BUDGETED, "tokens": 1_000_000}
        assert client.post("/runs/test/budget", json=budget).is_success
        for key in (*keys, drained, reached):
            eyes.wait(key, gone=True)
        wait_for(lambda: not eyes.look() - {(str(ConditionKind.SLOW), BUDGETED)}, "quiet", 60)

        eyes.assert_told([*keys, drained, reached])
        for name, (kind, _) in PROVOKED.items():
            eyes.assert_pill(name, kind)
        eyes.assert_pill(DRAINED, ConditionKind.DRAINING)
        eyes.assert_pill(BUDGETED, ConditionKind.BUDGET_REACHED)
        extra = {key for key in eyes.seen if key[1]} - {*keys, drained, reached}
        # an answer to another prompt fails at once: of that partition both are true
        assert extra <= {(str(ConditionKind.FAILING), "B5_prompt")}


@pytest.mark.slow
def test_srv_14_answers_to_other_prompts_pause_the_partition(
    run: CaseRun, simulator: SimulatorThread
) -> None:
    simulator.script({"@@tr": [{"gen": {"meta_info": {"prompt_tokens": 3}}, "delay": 0.2}]})
    run.concurrency = 4
    run.write_spec()
    run.write_rows([f"u{n} @@tr" for n in range(200)])
    with serving(run) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        wait_for(lambda: part(run_of(client))["state"] == "paused", "the pause", HANG_S)
        shown = part(run_of(client))
        assert shown["reason"].startswith("many mismatched: ")
        assert simulator.stats.calls_total < 100


@pytest.mark.slow
def test_one_partition_that_stands_still_beside_a_living_one_is_found(
    run: CaseRun, simulator: SimulatorThread, receiver: Receiver
) -> None:
    """The run as a whole moves on, and so does the server: only the row can say it."""
    living = {"*": ["ok with 20 output tokens, delay=0.3"]}
    simulator.script({"@@hang": ["hang"]} | living)
    alive, stuck = "B1_alive", "B2_stuck"
    run.run_lines = "stall_after_s = 4"
    run.spec_lines = "\n".join(
        f'[partition.{name}]\nclass = "short"\nconcurrency = 3' for name in (alive, stuck)
    )
    run.write_spec()
    run.write_rows([f"a{n}" for n in range(3_000)], alive)
    run.write_rows([f"h{n} @@hang" for n in range(3)], stuck)
    key = (str(ConditionKind.PARTITION_STALLED), stuck)
    with serving(run, heard_by(receiver)) as client:
        assert client.post("/runs", json=submission(run)).status_code == 201
        eyes = Eyes(client, receiver)
        eyes.wait(key)

        assert any(f"{stuck} is stalled" in one for one in eyes.run["needs_you"])
        assert (ConditionKind.STALLED, "") not in eyes.seen
        assert part(eyes.run, stuck)["time_left_s"] is None
        assert eyes.run["time_left_s"] is None
        assert eyes.run["time_left_unknown_because"] == f"{stuck} is stalled"
        assert part(eyes.run, alive)["speed_tokens_per_s"] > 0
        # the page may be a look behind the API
        wait_for(
            lambda: eyes.look() and any(one.startswith("Stalled") for one in eyes.pills[stuck]),
            "its pill",
        )
        page = client.get(f"{eyes.root}/runs/1", headers={"accept": "text/html"}).text
        assert f"Restart requests of {stuck}" in page
        assert f"Restart requests of {alive}" not in page

        simulator.script(living)
        assert client.post("/runs/test/restart", json={"partitions": [stuck]}).is_success
        wait_for(lambda: part(run_of(client), stuck)["samples"]["ok"] == 3, "its answers", HANG_S)
        eyes.wait(key, gone=True)
        eyes.assert_told([key])
        eyes.assert_pill(stuck, ConditionKind.PARTITION_STALLED)
