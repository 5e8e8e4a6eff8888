"""The reader of answers: joins what fits, and says what does not instead of storing it."""

import pytest

from app.core.types import EndKind
from app.sglang.stream import Answer
from tests.sglang_client.chunks import (
    STOP,
    cumulative,
    event,
    incremental,
    read,
)

IDS = [87, 88, 89, 90, 2]


def ids_of(answer: Answer) -> list[int]:
    return list(answer.end().ids)


@pytest.mark.parametrize("make", [cumulative, incremental])
@pytest.mark.parametrize("lengths", [[], [1], [1, 2, 3, 4], [2, 4], [5], [1, 1, 3, 3]])
def test_srv_09_both_modes_give_the_same_ids(make: object, lengths: list[int]) -> None:
    events = cumulative(IDS, lengths) if make is cumulative else incremental(IDS, lengths)

    answer = read(*events)

    end = answer.end()
    assert (end.kind, list(end.ids), end.finish_reason) == (EndKind.FINISHED, IDS, STOP)
    assert end.reported_prompt_tokens == 3
    assert answer.is_complete


def test_a_server_may_change_its_mode_in_mid_answer() -> None:
    """Text and ids differ in their mode on some versions; nothing relies on one mode."""
    answer = read(event([1], 1), event([2], 2), event([1, 2, 3], 3), event([4], 4, STOP))

    assert ids_of(answer) == [1, 2, 3, 4]


def test_text_is_joined_or_replaced_as_the_server_says() -> None:
    whole = read(*cumulative(IDS, [1, 3]))
    joined = read(*incremental(IDS, [1, 3]), text_is_delta=True)

    assert whole.end().text == joined.end().text == "<87><88><89><90><2>"


def test_an_answer_without_text_has_none() -> None:
    assert read(event(IDS, 5, STOP)).end().text is None
    assert read(event(IDS, 5, STOP, text="")).end().text is None


@pytest.mark.parametrize(
    "events",
    [
        [event([1], 1), event([3], 3, STOP)],  # a delta was dropped (up to 0.5.9, under load)
        [event([1, 2], 2), event([1], 1, STOP)],  # shorter than what is there
        [event([1, 2, 3], 2, STOP)],  # more ids than were counted
        [event([1], 3), event([1, 2, 3, 4], 4, STOP)],
        [event([], 2, STOP)],
    ],
)
def test_a_gap_breaks_the_stream(events: list[object]) -> None:
    answer = read(*events)

    end = answer.end()
    assert end.kind is EndKind.BROKEN
    assert "gap in the stream" in end.message
    assert not answer.is_finished


def test_ids_before_a_gap_are_not_changed_by_it() -> None:
    answer = read(event([1, 2], 2), event([9], 7), event([1, 2, 3], 3, STOP))

    assert ids_of(answer) == [1, 2]


@pytest.mark.parametrize("ids", [None, "87", {"0": 1}])
def test_srv_10_absent_ids_break_the_stream(ids: object) -> None:
    end = read(event(ids, 3, STOP)).end()

    assert end.kind is EndKind.NO_IDS
    assert "no output token ids" in end.message


@pytest.mark.parametrize("bad", ["x", 1.5, None, -1, 2**32, [1]])
def test_srv_10_ids_that_are_no_token_ids_break_the_stream_and_none_is_taken(bad: object) -> None:
    answer = read(event([1], 1), event([2, bad], 3, STOP))

    end = answer.end()
    assert end.kind is EndKind.NO_IDS
    assert "not a list of integers" in end.message
    assert list(end.ids) == [1]


def test_an_event_without_ids_before_the_first_token_is_nothing_wrong() -> None:
    answer = read({"text": "", "meta_info": {"finish_reason": None}}, event(IDS, 5, STOP))

    assert ids_of(answer) == IDS


def test_ids_that_no_count_vouches_for_are_not_taken() -> None:
    answer = read(event([7, 8], None), done=False)

    assert ids_of(answer) == []


def test_a_single_event_without_a_count_is_the_whole_answer() -> None:
    assert ids_of(read(event(IDS, None, STOP))) == IDS


@pytest.mark.parametrize("final", [IDS, [2]])
def test_a_last_event_without_a_count_proves_nothing(final: list[int]) -> None:
    """All ids or only the last ones: nobody can tell."""
    answer = read(event([87, 88], 2), event(final, None, STOP))

    assert answer.end().kind is EndKind.BROKEN


@pytest.mark.parametrize("final", [IDS, [2]])
def test_no_count_at_all_in_a_stream_proves_nothing(final: list[int]) -> None:
    answer = read(event([87, 88, 89, 90], None), event(final, None, STOP))

    assert answer.end().kind is EndKind.BROKEN
