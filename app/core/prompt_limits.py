"""Whether a prompt and its answer fit a server, and how long the answer may then be.

Owns the one rule that is safe for every server version: prompt + answer + reserved at most
context - 2, and the prompt at most one below the server's own limit. Invariant: the same prompt,
limits and policy always give the same answer limit, so every attempt sends the same one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.core.spec import LengthPolicy
from app.core.types import ServerFacts

SPARE_TOKENS = 2  # versions differ in < and <=, and the scheduler keeps one slot for itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLimits:
    """What bounds a request; None where no server said."""

    context_tokens: int | None = None
    max_prompt_tokens: int | None = None
    reserved_tokens: int = 0
    vocabulary_size: int | None = None
    policy: LengthPolicy = LengthPolicy.CLAMP

    @property
    def usable_tokens(self) -> int | None:
        """What prompt and answer may take together."""
        if self.context_tokens is None:
            return None
        return self.context_tokens - self.reserved_tokens - SPARE_TOKENS


def strictest(facts: Iterable[ServerFacts], policy: LengthPolicy) -> PromptLimits:
    """Return limits that hold on each of the servers: a sample may be sent to any of them.

    The vocabulary stays open; servers seldom tell it.
    """
    servers = list(facts)
    return PromptLimits(
        context_tokens=_least(each.context_tokens for each in servers),
        max_prompt_tokens=_least(each.max_prompt_tokens for each in servers),
        reserved_tokens=max((each.reserved_tokens for each in servers), default=0),
        policy=policy,
    )


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def answer_limit(
    limits: PromptLimits, prompt_tokens: int, max_new_tokens: int, min_new_tokens: int = 1
) -> int | str:
    """Return how many tokens the answer may have, or why this prompt cannot be sent."""
    prompt = f"the prompt has {prompt_tokens:,} tokens"
    context = f"the context of {limits.context_tokens or 0:,}"
    usable, longest = limits.usable_tokens, limits.max_prompt_tokens
    if usable is not None and prompt_tokens >= usable:
        return f"{prompt}, which does not fit {context}"
    if longest is not None and prompt_tokens > longest - 1:
        return f"{prompt}, the server takes at most {longest - 1:,}"
    if usable is None or prompt_tokens + max_new_tokens <= usable:
        return max_new_tokens
    left = usable - prompt_tokens
    if limits.policy is LengthPolicy.REJECT:
        wanted = f"max_new_tokens is {max_new_tokens:,}"
    elif left < min_new_tokens:
        wanted = f"min_new_tokens is {min_new_tokens:,}"
    else:
        return left
    return f"{prompt} and {wanted}; together they do not fit {context}"
