"""Properties of the reader: where bytes are split means nothing, and ids only ever grow."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.core.types import EndKind
from app.sglang.stream import Answer
from tests.sglang_client.chunks import ABORT, STOP, Json, cumulative, event, incremental, stream

IDS = st.lists(st.integers(0, 2**32 - 1), max_size=24)


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[int], list[Json]]:
    """Draw ids and the events of a good stream of them, in one of the modes or in both."""
    ids = draw(IDS)
    lengths = sorted(draw(st.lists(st.integers(0, len(ids)), max_size=6)))
    make = draw(st.sampled_from([cumulative, incremental]))
    finish = draw(st.sampled_from([STOP, {"type": "length", "length": len(ids)}]))
    return ids, make(ids, lengths, finish)


@st.composite
def odd_events(draw: st.DrawFn) -> Json:
    """Draw an event of a server that lies, loses and repeats."""
    ids: Any = draw(
        st.lists(st.integers(0, 9), max_size=5)
        | st.none()
        | st.lists(st.integers(-1, 2) | st.floats() | st.text(max_size=2), max_size=3)
    )
    n = draw(st.none() | st.integers(0, 9))
    made = event(ids, n, draw(st.sampled_from([None, None, None, STOP, ABORT])))
    if draw(st.integers(0, 9)) == 0:
        made["error"] = {"message": "x"}
    return made


def verdict(answer: Answer) -> tuple[object, ...]:
    end = answer.end()
    return (end.kind, list(end.ids), end.text, end.finish_reason, end.status, end.message)


def split(raw: bytes, cuts: list[float]) -> list[bytes]:
    places = [0, *sorted(int(cut * len(raw)) for cut in cuts), len(raw)]
    return [raw[a:b] for a, b in pairwise(places)]


@given(answers())
def test_a_good_stream_gives_its_ids(made: tuple[list[int], list[Json]]) -> None:
    ids, events = made
    answer = Answer()

    answer.feed(stream(*events))

    assert (answer.end().kind, list(answer.ids)) == (EndKind.FINISHED, ids)


@given(made=answers(), cuts=st.lists(st.floats(0, 1), max_size=12))
def test_where_a_good_stream_is_split_means_nothing(
    made: tuple[list[int], list[Json]], cuts: list[float]
) -> None:
    raw = stream(*made[1])
    whole, parts = Answer(), Answer()

    whole.feed(raw)
    for chunk in split(raw, cuts):
        parts.feed(chunk)

    assert verdict(parts) == verdict(whole)


def test_every_single_place_to_split_a_stream_means_nothing() -> None:
    for make in (cumulative, incremental):
        raw = stream(*make([87, 88, 2], [1, 2]))
        for k in range(len(raw) + 1):
            answer = Answer()
            answer.feed(raw[:k])
            answer.feed(raw[k:])
            assert (answer.end().kind, list(answer.ids)) == (EndKind.FINISHED, [87, 88, 2]), k


def test_a_stream_may_come_byte_by_byte() -> None:
    answer = Answer()

    for byte in stream(*incremental([87, 88, 2], [1, 2])):
        answer.feed(bytes([byte]))

    assert (answer.end().kind, list(answer.ids)) == (EndKind.FINISHED, [87, 88, 2])


@given(events=st.lists(odd_events(), max_size=8), cuts=st.lists(st.floats(0, 1), max_size=8))
def test_where_a_bad_stream_is_split_means_nothing_either(
    events: list[Json], cuts: list[float]
) -> None:
    raw = stream(*events)
    whole, parts = Answer(), Answer()

    whole.feed(raw)
    for chunk in split(raw, cuts):
        parts.feed(chunk)

    assert verdict(parts) == verdict(whole)


@given(events=st.lists(odd_events(), max_size=10))
def test_ids_never_shrink_and_never_change(events: list[Json]) -> None:
    answer = Answer()
    before: list[int] = []

    for each in events:
        answer.feed(stream(each, done=False))
        after = list(answer.ids)
        assert after[: len(before)] == before
        before = after


@given(events=st.lists(odd_events(), max_size=8), good=answers())
def test_an_answer_is_complete_only_if_its_last_count_is_its_length(
    events: list[Json], good: tuple[list[int], list[Json]]
) -> None:
    answer = Answer()
    taken = []

    for each in [*events, *good[1]]:
        answer.feed(stream(each, done=False))
        taken.append(each)
        if answer.is_over:
            break

    if answer.is_complete and "error" not in taken[-1] and not answer.broken:
        count = taken[-1]["meta_info"].get("completion_tokens", len(taken[-1]["output_ids"]))
        assert len(answer.ids) == count


@given(raw=st.binary(max_size=300))
def test_no_bytes_at_all_make_the_reader_fail(raw: bytes) -> None:
    streamed, whole = Answer(), Answer()

    streamed.feed(raw)
    streamed.feed(b"data: " + raw + b"\n\n")
    whole.whole(raw)

    assert streamed.end().kind in EndKind
    assert whole.end().kind in EndKind
