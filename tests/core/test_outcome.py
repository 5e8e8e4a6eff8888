"""What a finished answer counts as; cases of the failure list by their ids."""

import json
from array import array

import pytest

from app.core.outcome import Finish, finish_type
from app.core.states import SampleState
from app.core.types import Keep
from tests.core.attempts import CLOSE, END, OPEN, STOP, asked, failed, finished, ids, kept, put_back


@pytest.mark.parametrize(
    ("raw", "state", "stored"),
    [
        ({"type": "stop", "matched": 2}, SampleState.OK, '{"type":"stop","matched":2}'),
        ({"type": "stop", "matched": "###"}, SampleState.OK, '{"type":"stop","matched":"###"}'),
        ({"type": "stop", "matched": [1, 2]}, SampleState.OK, '{"type":"stop","matched":[1,2]}'),
        ({"type": "length", "length": 3}, SampleState.TRUNCATED, '{"type":"length","length":3}'),
        ("stop", SampleState.OK, "stop"),
        ("length", SampleState.TRUNCATED, "length"),
    ],
)
def test_srv_06_normal_ends_are_kept_with_their_raw_reason(
    raw: object, state: SampleState, stored: str
) -> None:
    assert kept(finished(raw)) == Keep(state=state, finish_reason=stored)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {"type": "content_filter"},
        "content_filter",
        {},
        {"type": None},
        {"type": ["stop"]},
        {"type": {"stop": 1}},
        ["stop"],
        7,
        True,
        "",
        "STOP",
        {"type": "stop", "matched": "NaN happened"},
    ],
)
def test_srv_06_every_other_reason_is_charged_and_started_over(raw: object) -> None:
    first = put_back(finished(raw))
    last = failed(finished(raw), asked(max_attempts=1))

    assert first.charged
    assert first.start_over
    spelled = raw if isinstance(raw, str) else json.dumps(raw, separators=(",", ":"))
    assert spelled in last.reason


def test_a_stop_by_nan_is_told_from_a_stop() -> None:
    assert finish_type({"type": "stop", "matched": "NaN happened"}) is Finish.NAN
    assert finish_type({"type": "stop", "matched": "nan"}) is Finish.STOP


def test_srv_14_a_prompt_cut_by_the_server_is_never_kept_and_names_both_numbers() -> None:
    end = finished(STOP, reported_prompt_tokens=3)

    first = put_back(end)
    last = failed(end, asked(max_attempts=1))

    assert first.charged
    assert first.start_over
    assert "3 tokens" in last.reason
    assert "10 were sent" in last.reason


def test_a_continuation_is_compared_with_what_was_sent_held_tokens_included() -> None:
    what = asked(prompt_tokens=12, held=ids(87, 88), max_new_tokens=5)

    assert kept(finished(STOP, reported_prompt_tokens=12), what).state is SampleState.OK


def test_srv_11_an_answer_of_nothing_but_end_tokens_is_empty() -> None:
    assert kept(finished(STOP, ids(END))).state is SampleState.EMPTY
    assert kept(finished(STOP, ids())).state is SampleState.EMPTY
    assert kept(finished("length", ids(END, END))).state is SampleState.EMPTY


def test_a_continuation_that_only_ends_is_not_empty() -> None:
    assert kept(finished(STOP, ids(END)), asked(held=ids(87))).state is SampleState.OK


@pytest.mark.parametrize("reason", ["length", STOP])
def test_srv_19_a_looping_answer_is_suspect(reason: object) -> None:
    tail = [END] if reason is STOP else []
    end = finished(reason, ids(*[36] * 400, *tail))

    outcome = kept(end, asked(max_new_tokens=400))

    assert outcome.state is SampleState.SUSPECT
    assert outcome.flags == ("loop",)


def test_a_loop_is_an_answer_like_any_other_where_loops_are_not_looked_for() -> None:
    end = finished({"type": "length", "length": 400}, ids(*[36] * 400))

    outcome = kept(end, asked(max_new_tokens=400, detect_loops=False))

    assert (outcome.state, outcome.flags) == (SampleState.TRUNCATED, ())


def test_a_loop_across_held_and_new_tokens_is_seen() -> None:
    half = ids(*[36, 37] * 75)

    outcome = kept(finished("length", half), asked(held=half, max_new_tokens=300))

    assert outcome.state is SampleState.SUSPECT


def test_srv_20_thinking_that_never_closed_is_truncated_and_says_so() -> None:
    end = finished({"type": "length", "length": 3}, ids(OPEN, 87, 88))

    outcome = kept(end)

    assert outcome.state is SampleState.TRUNCATED
    assert outcome.flags == ("thinking not closed",)


@pytest.mark.parametrize(
    ("held", "new", "by_prompt", "is_open"),
    [
        ([OPEN, 5], [6, 7], False, True),
        ([OPEN, 5, CLOSE], [6, 7], False, False),
        ([OPEN, 5, CLOSE], [OPEN, 7], False, True),
        ([], [5, 6], True, True),
        ([], [5, CLOSE], True, False),
        ([], [5, 6], False, False),
    ],
)
def test_the_last_thinking_mark_of_the_whole_answer_decides(
    held: list[int], new: list[int], by_prompt: bool, is_open: bool
) -> None:
    what = asked(held=ids(*held), max_new_tokens=1, thinking_opened_by_prompt=by_prompt)

    flags = kept(finished("length", ids(*new)), what).flags

    assert ("thinking not closed" in flags) is is_open


def test_without_a_closing_mark_nothing_is_said_of_thinking() -> None:
    assert kept(finished("length", ids(OPEN, 5, 6)), asked(think_close=None)).flags == ()


@pytest.mark.parametrize(
    ("reason", "n_held", "is_clipped"),
    [
        ({"type": "length", "length": 64}, 0, True),
        ({"type": "length", "length": 100}, 0, False),
        ({"type": "length", "length": 60}, 40, False),
        ({"type": "length", "length": 59}, 40, True),
        ("length", 97, False),
        ("length", 0, True),
        ({"type": "stop"}, 0, False),
    ],
)
def test_a_lower_length_than_asked_is_flagged(
    reason: object, n_held: int, is_clipped: bool
) -> None:
    what = asked(held=array("I", range(1000, 1000 + n_held)), max_new_tokens=100)

    assert ("clipped" in kept(finished(reason, ids(7, 8, 9)), what).flags) is is_clipped
