"""How an answer ends: normally, aborted, cut, with an error, or as no protocol knows it."""

import pytest

from app.core.types import EndKind
from app.sglang.stream import Answer
from tests.sglang_client.chunks import (
    STOP,
    abort,
    cumulative,
    event,
    fed,
    framed,
    read,
    stream,
)

IDS = [87, 88, 89, 90, 2]


def ids_of(answer: Answer) -> list[int]:
    return list(answer.end().ids)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (abort([1, 2, 3, 4], 4), [1, 2, 3, 4]),  # all ids, cumulative
        (abort([4], 4), [1, 2, 3, 4]),  # the missing one
        (abort([3], 3), [1, 2, 3]),  # a duplicate of the last one
        (abort([9], 9), [1, 2, 3]),  # the last one only, others were never sent
        (abort([], 0), [1, 2, 3]),  # queue abort after a retraction
        (abort([], None), [1, 2, 3]),
        (abort(None, None), [1, 2, 3]),
        (abort([1], 1), [1, 2, 3]),
        (abort(["junk"], 3), [1, 2, 3]),
    ],
)
def test_an_abort_adds_what_fits_exactly_and_takes_nothing_away(
    last: object, expected: list[int]
) -> None:
    answer = read(event([1], 1), event([1, 2, 3], 3), last)

    end = answer.end()
    assert (end.kind, list(end.ids)) == (EndKind.FINISHED, expected)
    assert not answer.is_complete


@pytest.mark.parametrize("ids", [[0], [], None])
def test_the_made_up_token_of_a_refusal_is_nobodys_answer(ids: object) -> None:
    last = abort(ids, 1 if ids else 0, status_code=400, message="too long")

    end = read(last).end()

    assert list(end.ids) == []
    assert end.finish_reason == {
        "type": "abort",
        "message": "too long",
        "status_code": 400,
        "err_type": None,
    }


def test_an_aborted_whole_answer_is_taken_as_far_as_it_came() -> None:
    assert ids_of(read(abort([1, 2, 3], 3))) == [1, 2, 3]


def test_srv_08_an_end_without_finish_reason_is_a_cut() -> None:
    answer = read(event([1, 2], 2), done=False)

    assert answer.end().kind is EndKind.CUT
    assert ids_of(answer) == [1, 2]
    assert not answer.is_over


def test_srv_08_text_alone_is_a_cut_too() -> None:
    assert read({"text": "Hel"}, done=False).end().kind is EndKind.CUT


def test_an_event_cut_in_the_middle_is_not_read() -> None:
    raw = stream(event([1], 1), event([1, 2], 2, STOP), done=False)

    answer = fed(raw[:-4])

    assert answer.end().kind is EndKind.CUT
    assert ids_of(answer) == [1]


def test_a_final_event_without_the_end_mark_is_an_end() -> None:
    assert read(event(IDS, 5, STOP), done=False).end().kind is EndKind.FINISHED


def test_the_end_mark_without_a_finish_reason_is_no_normal_end() -> None:
    end = read(event([1], 1)).end()

    assert (end.kind, end.finish_reason) == (EndKind.FINISHED, None)


def test_nothing_behind_the_end_changes_the_verdict() -> None:
    answer = Answer()
    answer.feed(stream(event(IDS, 5, STOP), event([*IDS, 7], 6, STOP)))
    answer.feed(framed({"error": {"message": "late"}}))
    answer.feed(framed(event([*IDS, 8], 6)))

    end = answer.end()
    assert (end.kind, list(end.ids)) == (EndKind.FINISHED, IDS)


def test_the_first_ids_are_announced_once() -> None:
    heard: list[int] = []
    answer = Answer()
    answer.on_first_ids = lambda: heard.append(len(answer.ids))

    for each in [event([], 0), *cumulative(IDS, [2, 3, 4])]:
        answer.feed(framed(each))

    assert heard == [2]


@pytest.mark.parametrize("last", [abort([0], 1), abort([], 0), event(["x"], 1, STOP)])
def test_first_ids_that_are_none_are_not_announced(last: object) -> None:
    heard: list[int] = []

    read(last, on_first_ids=lambda: heard.append(1))

    assert heard == []


def test_srv_07_an_error_event_ends_the_stream_with_its_message() -> None:
    first = {"text": "par", "output_ids": [115, 100]}
    error = {"error": {"message": "engine died", "code": 500}}

    end = read(first, error).end()

    assert (end.kind, end.status, end.message) == (EndKind.ERROR, 500, "engine died")
    assert list(end.ids) == []


def test_an_error_behind_tokens_keeps_them() -> None:
    end = read(event([1, 2], 2), {"error": {"message": "x", "code": 500}}).end()

    assert list(end.ids) == [1, 2]


def test_an_error_beside_ids_is_an_error() -> None:
    end = read(event([1], 1), event([1, 2], 2, None, error={"message": "bad"})).end()

    assert (end.kind, list(end.ids)) == (EndKind.ERROR, [1])


@pytest.mark.parametrize("payload", [b"{", b"nonsense", b"\xff\xfe", b"[" * 100_000, b""])
def test_an_event_that_is_not_json_breaks_the_stream(payload: bytes) -> None:
    end = fed(framed(event([1], 1)), framed(payload)).end()

    assert end.kind is EndKind.BROKEN
    assert "not JSON" in end.message
    assert len(end.message) < 500


@pytest.mark.parametrize("payload", [b"[]", b"3", b'"text"', b"null", b"[1, 2]"])
def test_an_event_that_is_no_object_breaks_the_stream(payload: bytes) -> None:
    end = fed(framed(payload)).end()

    assert (end.kind, "not an object" in end.message) == (EndKind.BROKEN, True)


def test_srv_18_nan_in_an_event_is_read() -> None:
    raw = framed(event([1, 2], 2, STOP)).replace(b'"id":"r"', b'"p":[[NaN,1],[-Infinity,2]]')

    assert ids_of(fed(raw)) == [1, 2]


def test_srv_18_nan_in_a_plain_body_is_read() -> None:
    answer = Answer()

    answer.whole(
        b'{"output_ids":[87,88,2],"meta_info":{"completion_tokens":3,"prompt_tokens":9,'
        b'"finish_reason":{"type":"stop"},"output_token_logprobs":[[NaN,87,null]]}}'
    )

    end = answer.end()
    assert (end.kind, list(end.ids), end.reported_prompt_tokens) == (
        EndKind.FINISHED,
        [87, 88, 2],
        9,
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", EndKind.BROKEN),
        (b"<html>", EndKind.BROKEN),
        (b"[" * 100_000, EndKind.BROKEN),
        (b"[{}, {}]", EndKind.BROKEN),
        (b'{"error": {"message": "bad request"}}', EndKind.ERROR),
        (b'[{"output_ids": [5], "meta_info": {"completion_tokens": 1}}]', EndKind.FINISHED),
    ],
)
def test_a_plain_body_is_one_event(body: bytes, kind: EndKind) -> None:
    answer = Answer()

    answer.whole(body)

    assert answer.end().kind is kind


@pytest.mark.parametrize(
    "raw",
    [
        b": comment\n\n",
        b"event: message\nid: 7\n",
        b"\r\n\r\n",
        b"retry: 10\n\n",
    ],
)
def test_other_lines_of_an_event_stream_are_passed_over(raw: bytes) -> None:
    answer = fed(raw + stream(event([1], 1)), raw, framed(event([1, 2], 2, STOP)))

    assert answer.end().kind is EndKind.FINISHED


def test_lines_may_end_as_windows_ends_them_and_need_no_space() -> None:
    raw = stream(*cumulative(IDS, [2, 4])).replace(b"\n", b"\r\n").replace(b"data: ", b"data:")

    assert ids_of(fed(raw)) == IDS


def test_the_weights_version_is_noted() -> None:
    last = event([1], 1, STOP)
    last["meta_info"]["weight_version"] = "v7"

    assert read(last).weight_version == "v7"
