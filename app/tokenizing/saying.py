"""An answer as the message that a later turn is asked behind.

Owns how ids become content and reasoning: where they part is told by ids alone
(`core/reasoning.py`); the text is the line's own, and the server's where that does not say it.
Invariant: text is neither trimmed nor normalised.
"""

from array import array
from collections.abc import Awaitable, Callable

from app.core.answer import text_ids, trimmed_text
from app.core.reasoning import Reasoning, ReasoningMarks, divide, prompt_opens
from app.core.turns import Message
from app.files.kept_answers import KeptAnswer

Detokenize = Callable[[list[int]], Awaitable[str]]


class Sayings:
    """Makes messages out of kept answers."""

    def __init__(self, detokenize: Detokenize, marks: ReasoningMarks) -> None:
        self._detokenize = detokenize
        self._marks = marks
        self._mark_texts: dict[int, str] = {}

    async def message(self, answer: KeptAnswer, prompt: "array[int]") -> Message:
        """Return what the assistant said, its reasoning apart where there is one."""
        is_open = bool(self._marks.closing) and prompt_opens(prompt, self._marks)
        parts = divide(answer.output_ids, self._marks, opened_by_prompt=is_open)
        if not parts.is_thinking:
            return {"role": "assistant", "content": await self._whole(answer)}
        reasoning, content = await self._parted(answer, parts)
        return {"role": "assistant", "content": content, "reasoning_content": reasoning}

    async def _whole(self, answer: KeptAnswer) -> str:
        if answer.text is not None:
            return answer.text
        ids = text_ids(answer.output_ids, answer.finish_reason)
        return trimmed_text(await self._detokenize(ids.tolist()), answer.finish_reason)

    async def _parted(self, answer: KeptAnswer, parts: Reasoning) -> tuple[str, str]:
        ids = answer.output_ids
        begin = 1 if ids and ids[0] in self._marks.opening else 0
        end = len(ids) if parts.end is None else parts.end
        if parts.end is not None and answer.text is not None:
            opening = await self._text_of(ids[0]) if begin else ""
            halves = answer.text.split(await self._text_of(ids[end]) or "\0", 1)
            is_once = len(halves) > 1 and halves[1].count(await self._text_of(ids[end])) == 0
            if is_once and halves[0].startswith(opening):
                return halves[0].removeprefix(opening), halves[1]
        said = text_ids(ids, answer.finish_reason)
        reasoning = await self._detokenize(said[begin:end].tolist())
        content = (
            "" if parts.resume is None else await self._detokenize(said[parts.resume :].tolist())
        )
        return reasoning, trimmed_text(content, answer.finish_reason)

    async def _text_of(self, token: int) -> str:
        """Return the text of a mark, "" where the tokenizer leaves it out."""
        if token not in self._mark_texts:
            self._mark_texts[token] = await self._detokenize([token])
        return self._mark_texts[token]
