"""Answers of a real server, replayed as it cut them, and split at every other place."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.core.types import EndKind
from app.sglang.stream import Answer

RECORDINGS = Path(__file__).parents[1] / "contract" / "recordings"


@dataclass(frozen=True)
class Expected:
    kind: EndKind
    n_ids: int
    finish: str | None = None
    status: int | None = None


STREAMS = {
    "abort_running_stream": Expected(EndKind.FINISHED, 16, "abort"),
    "abort_waiting_stream_incremental": Expected(EndKind.FINISHED, 0, "abort"),
    "cut_stream_no_terminator": Expected(EndKind.CUT, 11),
    "error_event_stream": Expected(EndKind.ERROR, 0, status=400),
    "prompt_over_pool_stream_made_up_id": Expected(EndKind.FINISHED, 0, "abort"),
    "queue_full_stream": Expected(EndKind.FINISHED, 0, "abort"),
    "queued_then_served_stream_incremental": Expected(EndKind.FINISHED, 60, "length"),
    "retracted_stream": Expected(EndKind.FINISHED, 120, "length"),
    "stream_cumulative": Expected(EndKind.FINISHED, 8, "length"),
    "stream_incremental": Expected(EndKind.FINISHED, 8, "length"),
    "stream_several_ids_in_one_event": Expected(EndKind.FINISHED, 40, "abort"),
    "stream_stop_token": Expected(EndKind.FINISHED, 6, "stop"),
}
WHOLE = {
    "abort_running_whole": Expected(EndKind.FINISHED, 49, "abort"),
    "abort_waiting_whole": Expected(EndKind.FINISHED, 0, "abort"),
    "error_whole": Expected(EndKind.ERROR, 0),
    "queue_full_whole": Expected(EndKind.BUSY, 0, status=503),
    "retracted_whole": Expected(EndKind.FINISHED, 120, "length"),
    "two_weight_versions_whole": Expected(EndKind.FINISHED, 120, "length"),
}
# A batch, which is never sent; and one in which the server said nothing at all.
NOT_READ = {"stream_batch_of_two_interleaved", "cut_whole_no_status"}


def chunks_of(name: str) -> list[bytes]:
    recording = json.loads((RECORDINGS / f"{name}.json").read_text())
    return [text.encode() for _, text in recording["response"]["chunks"]]


def counts_of(chunks: list[bytes]) -> list[int]:
    """Return `completion_tokens` of each event, read without the product."""
    found: list[int] = []
    for line in b"".join(chunks).split(b"\n"):
        if line.startswith(b"data: {"):
            content: dict[str, Any] = json.loads(line[6:])
            found.append(content.get("meta_info", {}).get("completion_tokens", 0))
    return found


def assert_is(answer: Answer, expected: Expected) -> None:
    end = answer.end()
    finish = end.finish_reason
    assert (end.kind, len(end.ids), end.status) == (
        expected.kind,
        expected.n_ids,
        expected.status,
    )
    assert (finish["type"] if isinstance(finish, dict) else finish) == expected.finish
    if expected.kind is EndKind.ERROR:
        assert "8200 tokens" in end.message


def test_every_recording_is_replayed() -> None:
    recorded = {path.stem for path in RECORDINGS.glob("*.json")}

    assert recorded == STREAMS.keys() | WHOLE.keys() | NOT_READ


@pytest.mark.parametrize("name", STREAMS)
def test_a_recorded_stream_is_read_as_it_was_cut(name: str) -> None:
    answer = Answer()
    lengths: list[int] = []

    for chunk in chunks_of(name):
        answer.feed(chunk)
        lengths.append(len(answer.ids))

    assert_is(answer, STREAMS[name])
    assert lengths == sorted(lengths)
    if STREAMS[name].n_ids:
        assert lengths[-1] == max(counts_of(chunks_of(name)))


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_a_recorded_stream_may_be_split_anywhere(name: str, size: int) -> None:
    raw = b"".join(chunks_of(name))
    answer = Answer()

    for start in range(0, len(raw), size):
        answer.feed(raw[start : start + size])

    assert_is(answer, STREAMS[name])


@pytest.mark.parametrize("name", WHOLE)
def test_a_recorded_plain_answer_is_read(name: str) -> None:
    answer = Answer()

    answer.whole(b"".join(chunks_of(name)))

    assert_is(answer, WHOLE[name])


def test_the_cumulative_and_the_whole_answer_of_one_prompt_have_the_same_ids() -> None:
    streamed, whole = Answer(), Answer()

    for chunk in chunks_of("retracted_stream"):
        streamed.feed(chunk)
    whole.whole(b"".join(chunks_of("retracted_whole")))

    assert len(streamed.ids) == len(whole.ids) == 120
    assert streamed.end().text is not None


def test_a_stream_that_is_cut_at_any_event_keeps_what_had_come() -> None:
    chunks = chunks_of("queued_then_served_stream_incremental")
    counts = counts_of(chunks)

    for k in range(1, len(counts)):
        answer = Answer()
        for chunk in chunks[:k]:
            answer.feed(chunk)
        assert (answer.end().kind, len(answer.ids)) == (EndKind.CUT, counts[k - 1])
