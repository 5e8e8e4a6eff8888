"""What an answer from elsewhere makes of a sample."""

from array import array
from dataclasses import replace

import pytest

from app.core.adopting import Found, Judging, Left, Sought, verdict, why_left
from app.core.states import SampleState
from app.core.types import Keep, SampleId

S = SampleState
SAMPLE = Sought(
    sample_id=SampleId(1),
    key="a",
    index=0,
    replica=0,
    state=S.PENDING,
    has_line=False,
    prompt_sha256="p",
    prompt_tokens=4,
    limit_tokens=6,
    held_tokens=0,
)
RULES = Judging(gen_id="g", vocabulary_size=100)
FOUND = Found(ids=array("I", [1, 2]), text=None, finish_reason="stop")


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (S.PENDING, None),
        (S.RUNNING, None),
        (S.OK, Left.ANSWERED),
        (S.TRUNCATED, Left.ANSWERED),
        (S.EMPTY, Left.ANSWERED),
        (S.SUSPECT, Left.ANSWERED),
        (S.FAILED, Left.CLOSED),
        (S.REJECTED, Left.CLOSED),
    ],
)
def test_only_an_open_sample_takes_an_answer(state: SampleState, why: Left | None) -> None:
    assert why_left(FOUND, replace(SAMPLE, state=state), RULES) is why


def test_a_sample_with_an_older_line_keeps_it() -> None:
    assert why_left(FOUND, replace(SAMPLE, has_line=True), RULES) is Left.ANSWERED


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (replace(FOUND, prompt_sha256s=("q", "p")), None),
        (replace(FOUND, prompt_sha256s=("q",)), Left.OTHER_PROMPT),
        (replace(FOUND, gen_id="g"), None),
        (replace(FOUND, gen_id="h"), Left.OTHER_SETTINGS),
        (replace(FOUND, ids=None), Left.NO_ANSWER),
        (replace(FOUND, ids=None, text=" \n"), Left.NO_ANSWER),
        (replace(FOUND, ids=None, text="so"), None),
        (replace(FOUND, finish_reason=None), None),
        (replace(FOUND, finish_reason={"type": "length", "length": 2}), None),
        (replace(FOUND, finish_reason={"type": "abort"}), Left.NOT_ENDED),
        (replace(FOUND, finish_reason={"type": "stop", "matched": "NaN happened"}), Left.NOT_ENDED),
        (replace(FOUND, finish_reason="error"), Left.NOT_ENDED),
    ],
    ids=[
        "prompt", "other prompt", "gen", "other gen", "nothing", "blank", "text", "unsaid",
        "length", "abort", "nan", "error",
    ],
)  # fmt: skip
def test_what_a_line_must_say(found: Found, why: Left | None) -> None:
    assert why_left(found, SAMPLE, RULES) is why


@pytest.mark.parametrize(
    ("ids", "finish_reason", "becomes"),
    [
        ([1, 2], "stop", S.OK),
        ([1, 2], None, S.OK),
        ([1, 2, 3, 4, 5, 6], None, S.TRUNCATED),
        ([1, 2], {"type": "length", "length": 2}, S.TRUNCATED),
        ([9], {"type": "stop", "matched": 9}, Left.NO_ANSWER),
        ([], "stop", Left.NO_ANSWER),
        ([1] * 7, "length", Left.TOO_LONG),
        ([1, 100], "stop", Left.BAD_IDS),
        ([1, 2], "abort", Left.NOT_ENDED),
    ],
    ids=["stop", "unsaid", "unsaid full", "length", "end id", "empty", "long", "ids", "abort"],
)
def test_what_a_sample_becomes(
    ids: list[int], finish_reason: object, becomes: SampleState | Left
) -> None:
    found = verdict(array("I", ids), finish_reason, SAMPLE, RULES)
    assert (found.state if isinstance(found, Keep) else found) is becomes
    assert not isinstance(found, Keep) or found.flags == ()


def test_a_loop_is_suspect() -> None:
    roomy = replace(SAMPLE, limit_tokens=1_000)
    found = verdict(array("I", [5] * 500), "stop", roomy, RULES)
    assert isinstance(found, Keep)
    assert (found.state, found.flags) == (S.SUSPECT, ("loop",))
