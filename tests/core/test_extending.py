"""Which truncated answers go on under a higher limit, and from which token."""

from array import array
from dataclasses import replace

import pytest

from app.core.extending import (
    Stay,
    Truncated,
    goes_on,
    is_of,
    stays_in_words,
    tokens_to_hold,
    why_it_stays,
)
from app.core.states import SampleState
from app.core.types import Claim, Fail, Keep, Outcome, PutBack, SampleId, Segment

ANSWER = Truncated(prompt_tokens=10, output_tokens=16, own_limit_tokens=None, flags=(), sampling={})
CUT = Keep(state=SampleState.TRUNCATED, finish_reason="length")
CLAIM = Claim(
    sample_id=SampleId(1),
    position=0,
    index=0,
    replica=0,
    key="a",
    attempt=1,
    charged=0,
    server_deaths=0,
    rid="r",
    prompt_tokens=3,
    token_offset=0,
    prompt_sha256="sha",
    max_new_tokens=16,
    held=array("I"),
)


@pytest.mark.parametrize(
    ("changes", "usable", "rejects", "expected"),
    [
        ({}, None, False, None),
        ({}, 27, False, None),
        ({}, 26, False, Stay.CONTEXT),
        ({}, 57, True, Stay.CONTEXT),
        ({}, 58, True, None),
        ({"flags": ("clipped",)}, None, False, Stay.CONTEXT),
        ({"flags": ("thinking not closed",)}, None, False, None),
        ({"own_limit_tokens": 16}, None, False, Stay.OWN_LIMIT),
        ({"own_limit_tokens": 17}, None, False, None),
        ({"output_tokens": 48}, None, False, Stay.THIS_LIMIT),
        ({"output_tokens": 48, "own_limit_tokens": 48}, None, False, Stay.THIS_LIMIT),
        ({"sampling": {"repetition_penalty": 1.1}}, None, False, Stay.STATEFUL),
        ({"sampling": {"json_schema": "{}"}}, None, False, Stay.STATEFUL),
        ({"sampling": {"stop": ["##"]}}, None, False, None),
    ],
)
def test_why_a_truncated_answer_stays(
    changes: dict[str, object], usable: int | None, *, rejects: bool, expected: Stay | None
) -> None:
    answer = replace(ANSWER, **changes)  # type: ignore[arg-type]  # named above
    assert why_it_stays(answer, 48, usable, rejects=rejects) is expected


@pytest.mark.parametrize(
    ("outcome", "changes", "limit", "sampling", "expected"),
    [
        (CUT, {}, 48, {}, True),
        (CUT, {}, 16, {}, False),
        (CUT, {"has_own_limit": True}, 48, {}, False),
        (CUT, {"sampling": {"regex": "a"}}, 48, {}, False),
        (CUT, {}, 48, {"frequency_penalty": 0.5}, False),
        (replace(CUT, flags=("clipped",)), {}, 48, {}, False),
        (replace(CUT, state=SampleState.OK), {}, 48, {}, False),
        (PutBack(charged=False, reason=""), {}, 48, {}, False),
        (Fail(reason=""), {}, 48, {}, False),
    ],
)
def test_an_answer_in_flight_goes_on_only_if_a_lower_limit_of_the_partition_cut_it(
    outcome: Outcome,
    changes: dict[str, object],
    limit: int,
    sampling: dict[str, object],
    *,
    expected: bool,
) -> None:
    claim = replace(CLAIM, **changes)  # type: ignore[arg-type]  # named above
    assert goes_on(outcome, claim, limit, sampling) is expected


def test_an_answer_is_of_the_present_settings_only_if_all_of_it_is() -> None:
    first = Segment(from_token=0, rid="a", server="s", gen_id="one")
    assert is_of([first], "one")
    assert not is_of([first, replace(first, from_token=3, gen_id="two")], "one")
    assert not is_of([], "one")


def test_the_id_that_ends_answers_is_not_built_on() -> None:
    assert tokens_to_hold([1, 2, 9], {9}, {}) == 2
    assert tokens_to_hold([1, 9, 2], {9}, {}) == 3
    assert tokens_to_hold([1, 2, 9], {9}, {"ignore_eos": True}) == 3
    assert tokens_to_hold([], None, {}) == 0


def test_what_stays_is_counted_by_its_reason() -> None:
    assert stays_in_words({}) == ""
    assert stays_in_words({Stay.OWN_LIMIT: 1}) == (
        "1 answer stays: 1 cut by a limit of the prompt's own"
    )
    assert stays_in_words({Stay.UNREADABLE: 2, Stay.CONTEXT: 1_200}) == (
        "1,202 answers stay: 1,200 with no room left in the server's context,"
        " 2 whose line is not what the ledger says"
    )
