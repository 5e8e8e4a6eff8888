"""The rule by which a prompt and its answer fit a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.prompt_limits import PromptLimits, answer_limit, strictest
from app.core.spec import LengthPolicy
from app.core.types import ServerFacts

LIMITS = PromptLimits(context_tokens=4096, max_prompt_tokens=4090, reserved_tokens=0)


@pytest.mark.parametrize(
    ("prompt", "wanted", "allowed"),
    [(10, 512, 512), (3582, 512, 512), (3583, 512, 511), (4000, 512, 94), (4089, 512, 5)],
)
def test_srv_15_the_answer_gets_what_the_prompt_leaves(
    prompt: int, wanted: int, allowed: int
) -> None:
    assert answer_limit(LIMITS, prompt, wanted) == allowed


def test_srv_13_both_numbers_are_named() -> None:
    assert answer_limit(LIMITS, 5000, 512) == (
        "the prompt has 5,000 tokens, which does not fit the context of 4,096"
    )
    assert answer_limit(LIMITS, 4090, 512) == (
        "the prompt has 4,090 tokens, the server takes at most 4,089"
    )


def test_draft_tokens_of_the_server_are_left_free() -> None:
    limits = PromptLimits(context_tokens=4096, reserved_tokens=16)

    assert answer_limit(limits, 4000, 512) == 78


def test_a_minimum_that_does_not_fit_is_a_rejection() -> None:
    assert answer_limit(LIMITS, 4000, 512, 100) == (
        "the prompt has 4,000 tokens and min_new_tokens is 100; together they do not fit"
        " the context of 4,096"
    )


def test_without_limits_everything_passes() -> None:
    assert answer_limit(PromptLimits(), 10**6, 512) == 512


def test_several_servers_are_taken_by_the_strictest() -> None:
    limits = strictest(
        [
            ServerFacts(context_tokens=8192, max_prompt_tokens=100, reserved_tokens=3),
            ServerFacts(context_tokens=4096),
            ServerFacts(),
        ],
        LengthPolicy.REJECT,
    )

    assert (limits.context_tokens, limits.max_prompt_tokens) == (4096, 100)
    assert (limits.reserved_tokens, limits.policy) == (3, LengthPolicy.REJECT)


@given(
    context=st.integers(1, 5000),
    reserved=st.integers(0, 50),
    prompt=st.integers(1, 6000),
    wanted=st.integers(1, 6000),
    policy=st.sampled_from(LengthPolicy),
)
def test_what_is_allowed_always_fits(
    context: int, reserved: int, prompt: int, wanted: int, policy: LengthPolicy
) -> None:
    limits = PromptLimits(context_tokens=context, reserved_tokens=reserved, policy=policy)

    found = answer_limit(limits, prompt, wanted)

    if isinstance(found, int):
        assert 1 <= found <= wanted
        assert prompt + found + reserved <= context - 2
        assert policy is LengthPolicy.CLAMP or found == wanted
    else:
        assert f"{prompt:,}" in found
        assert f"{context:,}" in found
