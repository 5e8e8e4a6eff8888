"""Texts of a sample as passages with headings: how much is folded, and an answer in its halves.

Owns the words of both halves. Where reasoning ends is decided by token ids, never here; the text
of a half is cut at the text's own mark, and only if that stands in it once: nothing is encoded or
decoded again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.core import format as words
from app.core.reasoning import Reasoning
from app.core.visible import visible

SHOWN_CHARS = 4_000
FOLDED_CHARS = 200_000
_THINK_END = "</think>"
_THINK_BEGIN = "<think>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text with its heading. `rest` is folded; `left_out` says what is not here at all."""

    heading: str
    note: str = ""
    text: str = ""
    rest: str = ""
    n_rest: str = ""
    left_out: str = ""


def passage(heading: str, text: str, note: str = "") -> Passage:
    """Fold a text behind its first 4,000 characters."""
    rest = text[SHOWN_CHARS:FOLDED_CHARS]
    left_out = len(text) - FOLDED_CHARS
    return Passage(
        heading=heading,
        note=note,
        text=visible(text[:SHOWN_CHARS]),
        rest=visible(rest),
        n_rest=words.whole(len(rest)),
        left_out=f"{left_out:,} more characters stand in the JSON." if left_out > 0 else "",
    )


def answer_passages(
    answer: Mapping[str, Any] | None, reasoning: Reasoning | None
) -> tuple[Passage, ...]:
    """Return an answer's reasoning and what is said; `reasoning` None: its ids do not tell."""
    if answer is None:
        return ()
    text = answer.get("text")
    if not isinstance(text, str):
        missing = "The server gave no text for it; the ids below are the answer."
        return (Passage(heading="answer", note=missing),)
    if reasoning is None:
        return _by_text(text)
    if not reasoning.is_thinking:
        return (passage("answer", text),)
    if reasoning.end is None:
        note = "The reasoning was never closed; there is no answer."
        return (passage("reasoning", _opened(text), note),)
    return _halves(text, reasoning.end)


def _halves(text: str, end: int) -> tuple[Passage, ...]:
    n_marks = text.count(_THINK_END)
    if n_marks != 1:
        times = "not at all" if not n_marks else f"{n_marks:,} times"
        note = (
            f"The reasoning ends at token {end:,}, but {_THINK_END} stands {times} in the text, so"
            " the text is not split."
        )
        return (passage("reasoning and answer", text, note),)
    reasoning, _, said = text.partition(_THINK_END)
    return (
        passage("reasoning", _opened(reasoning), f"Closed by token {end:,} of the answer."),
        passage("answer", said.lstrip("\n")),
    )


def _by_text(text: str) -> tuple[Passage, ...]:
    n_marks = text.count(_THINK_END)
    if n_marks > 1:
        note = f"{_THINK_END} stands {n_marks:,} times in the text, so the text is not split."
        return (passage("answer", text, note),)
    reasoning, mark, said = text.partition(_THINK_END)
    if not mark:
        return (passage("answer", text),)
    told = (
        f"The text before {_THINK_END}; it was split by text, not by token, because the ids of the"
        " marks or of the prompt are not known (think_open_ids, think_close_ids)."
    )
    return passage("reasoning", _opened(reasoning), told), passage("answer", said.lstrip("\n"))


def _opened(reasoning: str) -> str:
    return reasoning.removeprefix(_THINK_BEGIN).strip("\n")
