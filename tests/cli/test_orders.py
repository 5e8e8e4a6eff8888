"""Orders of the command line: straight to the ledger, or to the service that lives on the home."""

import json
import threading

import pytest

from app.core.states import PartitionState, RunState
from tests.api.conftest import Door
from tests.api.home import Home
from tests.cli.conftest import Longwatch


def test_an_order_without_a_service_says_when_it_takes_effect(
    longwatch: Longwatch, home: Home
) -> None:
    told = longwatch("pause", "night", "B1_chat")
    assert told.code == 0
    assert 'run 1 "night": B1_chat: state active -> paused' in told.out
    assert "takes effect when the run next starts" in told.out
    assert home.partition("B1_chat").state is PartitionState.PAUSED


def test_the_run_is_left_out_where_only_one_is_live(longwatch: Longwatch, home: Home) -> None:
    assert longwatch("pause", "B1_chat", "B2_code").code == 0
    assert home.partition("B2_code").state is PartitionState.PAUSED
    assert longwatch("resume").code == 0
    assert longwatch("pause").code == 0
    assert home.run.state is RunState.PAUSED


def test_of_two_runs_one_must_be_named(longwatch: Longwatch, home: Home) -> None:
    home.add_run("second")
    told = longwatch("pause", "B1_chat")
    assert told.code == 1
    assert '"night" (running)' in told.error


def test_an_order_that_is_refused_changes_nothing(longwatch: Longwatch, home: Home) -> None:
    told = longwatch("resume", "night")
    assert told.code == 1
    assert told.error.startswith("error: run 1 is running")
    assert told.out == ""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("budget", "night", "B1_chat", "12M"), "budget none -> 12,000,000"),
        (("budget", "B1_chat", "2.5k"), "budget none -> 2,500"),
        (("budget", "80M"), "run: budget none -> 80,000,000"),
        (("budget", "night", "80M"), "run: budget none -> 80,000,000"),
        (("budget", "night", "B1_chat", "none"), "budget none -> none"),
        (("concurrency", "night", "B1_chat", "64"), "share of its class -> 64"),
        (("concurrency", "B1_chat", "auto"), "share of its class -> share of its class"),
        (("goal", "night", "B1_chat", "7_000"), "goal none -> 7,000"),
        (("deadline", "night", "+6h"), "run: deadline none -> "),
        (("deadline", "B1_chat", "08:00"), "B1_chat: deadline none -> "),
        (("deadline", "none"), "run: deadline none -> none"),
        (("drain", "night"), "B1_chat: state active -> draining"),
        (("stop",), "run: state stopping -> stopped"),
    ],
)
def test_orders_say_old_and_new(
    longwatch: Longwatch, home: Home, words: tuple[str, ...], shown: str
) -> None:
    told = longwatch(*words)
    assert (told.code, told.error) == (0, "")
    assert shown in told.out


@pytest.mark.parametrize(
    "words",
    [
        ("budget", "night", "B1_chat", "much"),
        ("budget", "night", "B1_chat", "B2_code", "1M"),
        ("concurrency", "night", "B1_chat", "-4"),
        ("concurrency", "night", "B1_chat", "20000"),
        ("concurrency", "night", "64"),
        ("goal", "night", "B1_chat", "1.5"),
        ("goal", "night", "B1_chat", "9" * 5000),
        ("deadline", "night", "9999-12-31T23:59:59-23:59"),
        ("budget", "night", "--sum", "5M"),
        ("stop", "night", "B1_chat"),
        ("retry", "night", "B1_chat"),
        ("retry", "night", "--state", "ok"),
    ],
)
def test_wrong_values_are_told(longwatch: Longwatch, home: Home, words: tuple[str, ...]) -> None:
    before = [home.partition(name) for name in home.names]
    told = longwatch(*words)
    assert told.code == 1
    assert told.error.startswith("error: ")
    assert [home.partition(name) for name in home.names] == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("budget", "night", "B1_chat", "-5"), "a budget is at least 1 token"),
        (("goal", "night", "B1_chat", "-5"), 'goal "-5" is not a whole number of at least 1'),
        (("concurrency", "night", "B1_chat", "-4"), 'concurrency "-4" is not a whole number of'),
        (("budget", "B1_chat", "5M", "--hom", "x"), "there is no option --hom"),
        (("deadline", "night", "-1h"), '"-1h" is not a moment'),
    ],
)
def test_a_limit_below_one_is_no_option_that_is_missing(
    longwatch: Longwatch, home: Home, words: tuple[str, ...], said: str
) -> None:
    told = longwatch(*words)
    assert (told.code, home.partition("B1_chat").token_budget) == (1, None)
    assert said in told.error


def test_retry_by_reason_and_state(longwatch: Longwatch, home: Home) -> None:
    home.fail("B1_chat", 3, reason="HTTP 500: boom")
    home.fail("B1_chat", 1, reason="timed out")
    told = longwatch("retry", "--reason", "boom", "--state", "failed", "--state", "empty")
    assert "3 pending again" in told.out
    assert home.partition("B1_chat").counts.failed == 1


def test_status_shows_the_run_and_that_no_service_runs(longwatch: Longwatch, home: Home) -> None:
    home.keep("B1_chat", 4, tokens=300)
    home.fail("B2_code", 2)
    told = longwatch("status")
    assert "night: not running since " in told.out
    assert "go on with: longwatch serve --home " in told.out
    assert "; 30 %; needs you, see below" in told.out
    assert "2 samples failed in B2_code." in told.out
    assert "4/10 samples" in told.out
    assert "No service runs on this home." in told.out


def test_status_as_json_is_the_form_of_the_api(longwatch: Longwatch, home: Home) -> None:
    value = json.loads(longwatch("status", "night", "--json").out)
    assert value["name"] == "night"
    assert value["service"] is None
    assert value["is_served"] is False
    assert [one["kind"] for one in value["conditions"]] == ["not served"]
    assert value["samples"]["total"] == 20


def test_status_lists_runs_where_none_is_meant(longwatch: Longwatch, home: Home) -> None:
    home.add_run("second")
    told = longwatch("status")
    assert told.code == 0
    assert '1 "night" running' in told.out
    assert '2 "second" running' in told.out
    assert len(json.loads(longwatch("status", "--json").out)["runs"]) == 2


# -- with a service -------------------------------------------------------------------------


def test_orders_go_to_the_service_that_lives(
    longwatch: Longwatch, home: Home, service: Door
) -> None:
    told = longwatch("pause", "night", "B1_chat")
    assert (told.code, told.error) == (0, "")
    assert "takes effect when" not in told.out
    assert service.n_pokes == 1
    assert home.partition("B1_chat").state is PartitionState.PAUSED


def test_a_refusal_of_the_service_is_told_in_its_words(longwatch: Longwatch, service: Door) -> None:
    told = longwatch("resume", "night")
    assert told.code == 1
    assert told.error.startswith("error: run 1 is running")


def test_status_tells_where_the_service_is(longwatch: Longwatch, service: Door) -> None:
    assert "Service: http://127.0.0.1:" in longwatch("status").out
    value = json.loads(longwatch("status", "--json").out)
    assert value["service"]["address"].startswith("http://127.0.0.1:")


def test_another_token_is_not_taken(
    longwatch: Longwatch, service: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGWATCH_TOKEN", "not-the-one-of-this-service")
    told = longwatch("pause", "night")
    assert told.code == 1
    assert "does not take this token" in told.error


def test_run_gives_the_spec_to_the_living_service_and_follows(
    longwatch: Longwatch, home: Home, service: Door
) -> None:
    """A second run of the home: every sample is answered while it is followed."""
    worker = threading.Thread(target=lambda: _finish_second(home, service))
    worker.start()
    told = longwatch(
        "run", "--name", "second", "--output-dir", str(home.output_dir),
        "--server-url", home.server_url, "--accept-changes",
    )  # fmt: skip
    worker.join(30)
    assert told.code == 3
    assert "the run is given to it" in told.out
    assert "2 records were rejected" in told.out
    assert 'Run 2 "second"' in told.out
    assert "The run is stopped" in told.out
    [(spec, accepted, who)] = service.submitted
    assert spec.name == "second"
    assert accepted
    assert who == "operator (command line)"


def _finish_second(home: Home, service: Door) -> None:
    for _ in range(3_000):
        if service.submitted and len(service.home_runs()) == 2:
            break
        threading.Event().wait(0.01)
    service.stop_run("second")
