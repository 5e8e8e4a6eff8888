"""A kept line read back whole: taken only if its parts agree."""

from array import array
from typing import Any

import orjson
import pytest

from app.core.types import Segment
from app.files.kept_answers import read_kept

FIELDS: dict[str, Any] = {
    "rid": "lw1",
    "prompt_sha256": "sha",
    "completion_tokens": 3,
    "segments": [
        {"from_token": 0, "rid": "a", "server": "http://s", "gen_id": "g"},
        {"from_token": 2, "rid": "b", "server": "http://s", "gen_id": "g"},
    ],
    "output_ids": [5, 6, 4_000_000_000],
}


def line(**changes: object) -> bytes:
    return orjson.dumps({**FIELDS, **changes}) + b"\n"


def test_ids_and_segments_are_what_the_line_says() -> None:
    answer = read_kept(line())
    assert answer is not None
    assert answer.output_ids == array("I", [5, 6, 4_000_000_000])
    assert answer.segments[1] == Segment(from_token=2, rid="b", server="http://s", gen_id="g")
    assert (answer.rid, answer.completion_tokens, answer.prompt_sha256) == ("lw1", 3, "sha")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]\n",
        b"{}\n",
        line(rid=7),
        line(prompt_sha256=None),
        line(output_ids=[1, -1]),
        line(output_ids=[1, 2**32]),
        line(output_ids=[1, 2.5]),
        line(output_ids=["1"]),
        line(output_ids=[1]),  # a segment begins behind the end
        line(segments=[]),
        line(segments=[FIELDS["segments"][1]]),
        line(segments=[FIELDS["segments"][0]] * 2),
        line(segments=[{"from_token": 0}]),
        line(segments=[{**FIELDS["segments"][0], "from_token": True}]),
        line(segments="ab"),
    ],
)
def test_a_line_whose_parts_do_not_agree_is_not_taken(content: bytes) -> None:
    assert read_kept(content) is None
