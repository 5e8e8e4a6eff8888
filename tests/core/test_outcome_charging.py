"""Which failures are charged, free, final or nobody's fault; cases by their ids."""

import pytest

from app.core.types import AttemptEnd, EndKind, Fail, Halt, Keep, PutBack
from tests.core.attempts import asked, failed, finished, ids, put_back, verdict


def test_srv_04_abort_for_want_of_kv_is_an_error_with_bounded_retries() -> None:
    reason = {"type": "abort", "message": "KV pool exhausted", "status_code": 507}
    end = finished(reason, ids(8, 8, 8))

    first = put_back(end, asked(max_attempts=2))
    last = failed(end, asked(max_attempts=2, charged=1))

    assert first.charged
    assert not first.start_over
    assert "KV pool exhausted" in last.reason


@pytest.mark.parametrize(
    "more", [{}, {"message": "x"}, {"status_code": None}, {"status_code": 500}]
)
def test_srv_05_abort_is_charged_and_never_kept(more: dict[str, object]) -> None:
    end = finished({"type": "abort"} | more, ids())

    assert put_back(end).charged
    assert put_back(end, asked(charged=1)).charged
    assert failed(end, asked(charged=2)).reason


@pytest.mark.parametrize("status", [429, 503])
def test_abort_for_a_full_queue_is_not_charged(status: int) -> None:
    end = finished(
        {"type": "abort", "message": "The request queue is full.", "status_code": status}
    )

    outcome = put_back(end, asked(charged=2))

    assert not outcome.charged
    assert "queue is full" in outcome.reason


def test_abort_for_a_prompt_that_cannot_fit_fails_at_once() -> None:
    reason = {"type": "abort", "message": "Input length exceeds", "status_code": 400}

    assert "Input length exceeds" in failed(finished(reason, ids())).reason


def test_abort_in_an_ok_stream_is_not_taken_for_an_ok_status() -> None:
    assert put_back(finished({"type": "abort"}, ids(), status=200)).charged


@pytest.mark.parametrize(
    ("status", "message"), [(500, "engine died"), (200, "bad request"), (None, "bad request")]
)
def test_srv_07_error_inside_a_good_answer_keeps_its_words(
    status: int | None, message: str
) -> None:
    end = AttemptEnd(kind=EndKind.ERROR, ids=ids(115, 100), status=status, message=message)

    assert put_back(end, asked(max_attempts=2)).charged
    assert message in failed(end, asked(max_attempts=2, charged=1)).reason


def test_a_reason_says_a_thing_once() -> None:
    late = AttemptEnd(kind=EndKind.TIMEOUT, message="no end within request_timeout_s = 6 s")
    broken = AttemptEnd(kind=EndKind.ERROR, status=500, message="internal")
    full = AttemptEnd(kind=EndKind.BUSY, status=503, message="queue full")

    assert put_back(late).reason == "timeout: no end within request_timeout_s = 6 s"
    assert put_back(broken).reason == "the server answered 500: internal"
    assert put_back(full).reason == "the server is busy (503): queue full"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_srv_13_a_refusal_of_the_request_fails_without_another_try(status: int) -> None:
    message = "prompt of 5000 tokens does not fit the context of 4096"
    end = AttemptEnd(kind=EndKind.ERROR, status=status, message=message)

    reason = failed(end, asked(max_attempts=5)).reason

    assert message in reason
    assert str(status) in reason


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_a_server_that_serves_nobody_halts_the_worker(status: int) -> None:
    end = AttemptEnd(kind=EndKind.ERROR, status=status, message="Unauthorized")

    outcome = verdict(end)

    assert isinstance(outcome, Halt)
    assert "Unauthorized" in outcome.reason


@pytest.mark.parametrize("kind", [EndKind.BUSY, EndKind.ERROR])
@pytest.mark.parametrize("status", [429, 503])
def test_srv_17_a_full_queue_charges_nothing_and_obeys_the_server(
    kind: EndKind, status: int
) -> None:
    hinted = AttemptEnd(kind=kind, status=status, message="full", retry_after_s=2.0)
    silent = AttemptEnd(kind=kind, status=status, message="full")

    told, own = (put_back(end, asked(charged=2, max_attempts=3)) for end in (hinted, silent))

    assert not told.charged
    assert not own.charged
    assert 2.0 < told.delay_s <= 3.0  # more than told: the jitter stays
    assert own.delay_s == 0.5


@pytest.mark.parametrize("hint", [float("inf"), 1e12])
def test_an_absurd_retry_after_is_bounded(hint: float) -> None:
    assert put_back(AttemptEnd(kind=EndKind.BUSY, retry_after_s=hint)).delay_s <= 3601


@pytest.mark.parametrize("hint", [0.0, -5.0, float("nan")])
def test_a_retry_after_that_says_nothing_leaves_the_own_delay(hint: float) -> None:
    assert put_back(AttemptEnd(kind=EndKind.BUSY, retry_after_s=hint)).delay_s == 0.5


@pytest.mark.parametrize(
    "end",
    [
        AttemptEnd(kind=EndKind.ERROR, status=500, message="{}"),
        AttemptEnd(kind=EndKind.ERROR, status=507, message="Out of memory"),
        AttemptEnd(kind=EndKind.ERROR, status=408),
        AttemptEnd(kind=EndKind.ERROR, status=418),
        AttemptEnd(kind=EndKind.CUT),
        AttemptEnd(kind=EndKind.TIMEOUT),
        AttemptEnd(kind=EndKind.BROKEN, message="a gap"),
    ],
)
def test_net_07_max_attempts_is_exact_for_every_kind_of_failure(end: AttemptEnd) -> None:
    outcomes = [verdict(end, asked(charged=charged, max_attempts=3)) for charged in range(3)]

    assert [type(outcome) for outcome in outcomes] == [PutBack, PutBack, Fail]
    assert all(outcome.charged for outcome in outcomes if isinstance(outcome, PutBack))


def test_a_cut_that_brought_tokens_is_free() -> None:
    outcome = put_back(AttemptEnd(kind=EndKind.CUT, ids=ids(5)), asked(charged=2))

    assert not outcome.charged
    assert not outcome.server_died
    assert not outcome.start_over


@pytest.mark.parametrize(("tokens", "is_suspected"), [([], True), ([5], False)])
def test_the_death_of_the_server_is_free_and_counted_where_nothing_came(
    tokens: list[int], is_suspected: bool
) -> None:
    end = AttemptEnd(kind=EndKind.CUT, ids=ids(*tokens))

    outcome = put_back(end, asked(charged=2), alive=False)

    assert not outcome.charged
    assert outcome.server_died is is_suspected


@pytest.mark.parametrize(
    ("deaths", "alone", "gives_up"),
    [(2, True, True), (2, False, False), (1, True, False), (5, False, False)],
)
def test_a_sample_that_kills_servers_fails_only_when_it_ran_alone(
    deaths: int, alone: bool, gives_up: bool
) -> None:
    what = asked(server_deaths=deaths, was_alone=alone)

    outcome = verdict(AttemptEnd(kind=EndKind.CUT), what, alive=False)

    assert isinstance(outcome, Fail) is gives_up
    if isinstance(outcome, Fail):
        assert "died 3 times" in outcome.reason


def test_waiting_and_stopping_are_free() -> None:
    refused = put_back(AttemptEnd(kind=EndKind.REFUSED), asked(charged=2), alive=False)
    withdrawn = put_back(AttemptEnd(kind=EndKind.WITHDRAWN, ids=ids(5)), asked(charged=2))

    assert (refused.charged, refused.server_died) == (False, False)
    assert (withdrawn.charged, withdrawn.delay_s) == (False, 0.0)


def test_srv_10_a_trial_without_ids_halts_and_a_later_row_starts_over() -> None:
    end = AttemptEnd(kind=EndKind.NO_IDS, message="the server returned no output token ids")

    trial, later = verdict(end, asked(is_trial=True)), put_back(end)

    assert trial == Halt(reason="the server returned no output token ids")
    assert (later.charged, later.start_over) == (True, True)


def test_one_unreadable_answer_halts_nothing_even_on_trial() -> None:
    end = AttemptEnd(kind=EndKind.BROKEN, message="the body is not JSON: <html>")

    outcome = put_back(end, asked(is_trial=True))

    assert (outcome.charged, outcome.start_over) == (True, True)


def test_the_length_of_a_continued_answer_is_the_whole_answers() -> None:
    end = AttemptEnd(
        kind=EndKind.FINISHED, ids=ids(*range(5, 12)), finish_reason={"type": "length", "length": 7}
    )

    outcome = verdict(end, asked(held=ids(1, 2, 3), max_new_tokens=10))

    assert isinstance(outcome, Keep)
    assert outcome.finish_reason == '{"type":"length","length":10}'
    assert outcome.flags == ()


def test_a_message_that_echoes_the_prompt_is_cut() -> None:
    end = AttemptEnd(kind=EndKind.ERROR, status=400, message="x" * 100_000)

    assert len(failed(end).reason) < 600


def test_a_blank_message_still_gives_a_reason() -> None:
    end = AttemptEnd(kind=EndKind.WITHDRAWN, message=" \n")

    assert put_back(end).reason == "no message"
