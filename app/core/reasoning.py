"""Where the reasoning of an answer ends and what is said begins, by token ids alone.

Owns the rule. Pure; text is never looked at: decoding and encoding again is no identity, and a
model may write the words of a mark without meaning it.

An answer begins inside its reasoning if the prompt ends with the opening mark (or opened one and
closed none), or if its own first token is that mark. The reasoning ends before the first closing
mark, or before the first mark that begins tool calls, which closes it too. Source: SGLang's
reasoning parser `kimi_k2`, which does the same with text and therefore misses the first case.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Set as AbstractSet
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningMarks:
    """Token ids of a model: what opens and what closes reasoning, and what begins tool calls."""

    opening: AbstractSet[int] = frozenset()
    closing: AbstractSet[int] = frozenset()
    tool_calls: AbstractSet[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """How an answer is divided; positions are indexes into its ids.

    Reasoning is `ids[:end]`, what is said `ids[resume:]`. They differ by the closing mark between
    them, and are equal where tool calls closed it. Both None: the reasoning was never closed, and
    nothing is said (`is_unclosed`), or there is none (`is_thinking` False).
    """

    is_thinking: bool
    end: int | None = None
    resume: int | None = None

    @property
    def is_unclosed(self) -> bool:
        return self.is_thinking and self.end is None


NO_REASONING = Reasoning(is_thinking=False)


def prompt_opens(prompt: array[int], marks: ReasoningMarks) -> bool:
    """Whether the prompt ends inside reasoning: its last mark, if it has one, opens it."""
    for token in reversed(prompt):
        if token in marks.closing:
            return False
        if token in marks.opening:
            return True
    return False


def divide(answer: array[int], marks: ReasoningMarks, *, opened_by_prompt: bool) -> Reasoning:
    """Return where the reasoning of an answer ends.

    >>> marks = ReasoningMarks(opening={1}, closing={2})
    >>> divide(array("I", [7, 8, 2, 9]), marks, opened_by_prompt=True)
    Reasoning(is_thinking=True, end=2, resume=3)
    >>> divide(array("I", [7, 8]), marks, opened_by_prompt=True).is_unclosed
    True
    """
    starts_open = bool(answer) and answer[0] in marks.opening
    if not (opened_by_prompt or starts_open):
        return NO_REASONING
    for at, token in enumerate(answer):
        if token in marks.closing:
            return Reasoning(is_thinking=True, end=at, resume=at + 1)
        if token in marks.tool_calls:
            return Reasoning(is_thinking=True, end=at, resume=at)
    return Reasoning(is_thinking=True)
