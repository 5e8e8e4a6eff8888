"""Where the reasoning of an answer ends and what is said begins, by token ids alone.

Owns the rule. Pure; text is never looked at: decoding and encoding again is no identity, and a
model may write the words of a mark without meaning it.

An answer begins inside its reasoning if the prompt ends with the opening mark (or opened one and
closed none), or if its own first token is that mark. The reasoning ends before the first closing
mark, or before the first mark that begins tool calls, which closes it too. Source: SGLang's
reasoning parser `kimi_k2`, which does the same with text and therefore misses the first case.
"""

from collections.abc import Sequence
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


def prompt_opens(prompt: Sequence[int], marks: ReasoningMarks) -> bool:
    """Whether the prompt ends inside reasoning: its last mark, if it has one, opens it."""
    if all(_first(prompt, mark) is None for mark in marks.opening):
        return False
    for token in reversed(prompt):
        if token in marks.closing or token in marks.opening:
            return token in marks.opening
    return False


def divide(answer: Sequence[int], marks: ReasoningMarks, *, opened_by_prompt: bool) -> Reasoning:
    """Return where the reasoning of an answer ends.

    >>> marks = ReasoningMarks(opening={1}, closing={2})
    >>> divide([7, 8, 2, 9], marks, opened_by_prompt=True)
    Reasoning(is_thinking=True, end=2, resume=3)
    >>> divide([7, 8], marks, opened_by_prompt=True).is_unclosed
    True
    """
    starts_open = bool(answer) and answer[0] in marks.opening
    if not (opened_by_prompt or starts_open):
        return NO_REASONING
    firsts = [_first(answer, mark) for mark in marks.closing | marks.tool_calls]
    end = min((at for at in firsts if at is not None), default=None)
    if end is None:
        return Reasoning(is_thinking=True)
    return Reasoning(is_thinking=True, end=end, resume=end + (answer[end] in marks.closing))


def _first(ids: Sequence[int], mark: int) -> int | None:
    """Return where a mark stands first. The search of lists and arrays is far from any loop's."""
    try:
        return ids.index(mark)
    except ValueError:
        return None
