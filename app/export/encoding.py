"""Answers that a dataset has already, as token ids: what the model would have been asked, and said.

Owns how a turn is written as the text that a model makes: reasoning, its closing mark, the content,
calls, the text that ends a turn. Ids come from the server's `/tokenize`, the authority for
template and tokenizer: the prompt as messages, so with the generation prompt, and the answer as a
text without added special tokens. A whole conversation is never rendered, because templates drop
the reasoning of earlier turns.
"""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple, Self

from app.core.reasoning import NO_REASONING, Reasoning
from app.errors import InputError, ServerAwayError, ServerError
from app.sglang.client import ServerClient
from app.sources.contract import Message

_AT_ONCE = 16


class CallsForm(StrEnum):
    """How a model writes its calls. Others than these are not known, and then left out."""

    KIMI = "kimi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """The texts around a turn. `calls`: None leaves out turns that call."""

    end: str = "<|im_end|>"
    opens_reasoning: str = "<think>"
    closes_reasoning: str = "</think>"
    calls: CallsForm | None = None


class Turn(NamedTuple):
    """One answer of a conversation: what stands before it, and the message itself."""

    before: list[Message]
    tools: list[object] | None
    said: Message


class Encoded(NamedTuple):
    prompt: list[int]
    answer: list[int]
    reasoning: Reasoning
    stop_id: int | None


class Encoder:
    """Asks one server; opened and closed by its owner. Not for several threads."""

    def __init__(self, url: str, writing: Writing, api_key: str | None = None) -> None:
        self._url, self._writing, self._api_key = url, writing, api_key
        self._marks: dict[str, list[int]] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner())
            self._client = ServerClient(self._url, api_key=self._api_key)
            self._runner.run(self._client.__aenter__())
            stack.callback(lambda: self._runner.run(self._client.__aexit__()))
            for text in (self._writing.end, *self._reasoning_texts()):
                self._marks[text] = self._runner.run(self._ids(text))
            self._check_end()
            self._open = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def _check_end(self) -> None:
        end = self._writing.end
        if len(self._marks[end]) != 1:
            raise InputError(
                f'--end-text "{end}" is {len(self._marks[end])} tokens at {self._url},'
                " not the one that ends a turn",
                hint='say how the model ends its turns, for example --end-text "<|im_end|>"',
            )

    def encode(self, turns: Sequence[Turn]) -> list[Encoded | ServerError]:
        """Return each turn's ids in order, or what server and template have against it.

        Raises ServerAwayError if the server does not answer.
        """
        return self._runner.run(self._all(turns))

    def _reasoning_texts(self) -> tuple[str, str]:
        return self._writing.opens_reasoning, self._writing.closes_reasoning

    async def _ids(self, text: str) -> list[int]:
        return await self._client.tokenize({"prompt": text, "add_special_tokens": False})

    async def _all(self, turns: Sequence[Turn]) -> list[Encoded | ServerError]:
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(turn: Turn) -> Encoded | ServerError:
            async with places:
                try:
                    return await self._one(turn)
                except ServerAwayError:
                    raise
                except ServerError as error:
                    return error

        return await asyncio.gather(*map(one, turns))

    async def _one(self, turn: Turn) -> Encoded:
        reasoning = str(turn.said.get("reasoning_content") or "")
        body: dict[str, object] = {
            "messages": turn.before,
            # templates call the switch one or the other, and pass over what they do not know
            "chat_template_kwargs": {
                "thinking": bool(reasoning),
                "enable_thinking": bool(reasoning),
            },
        }
        if turn.tools:
            body["tools"] = turn.tools
        prompt = await self._client.tokenize(body)
        opening = self._marks[self._writing.opens_reasoning]
        is_open = prompt[len(prompt) - len(opening) :] == opening
        answer = await self._ids(self._text(turn.said, reasoning, is_open=is_open))
        return Encoded(prompt, answer, self._divided(answer, reasoning), answer[-1])

    def _text(self, said: Message, reasoning: str, *, is_open: bool) -> str:
        writing, text = self._writing, str(said.get("content") or "")
        if reasoning:
            opening = "" if is_open else writing.opens_reasoning
            text = f"{opening}{reasoning}{writing.closes_reasoning}{text}"
        calls = said.get("tool_calls")
        return text + (kimi_calls(calls) if calls else "") + writing.end

    def _divided(self, answer: list[int], reasoning: str) -> Reasoning:
        """Return where the reasoning ends, where its closing mark is one token; else unknown."""
        closing = self._marks[self._writing.closes_reasoning]
        if not reasoning:
            return NO_REASONING
        if len(closing) != 1 or closing[0] not in answer:
            return Reasoning(is_thinking=True, end=0, resume=0)
        end = answer.index(closing[0])
        return Reasoning(is_thinking=True, end=end, resume=end + 1)


def kimi_calls(calls: object) -> str:
    """Return calls as Kimi K2 writes them: id and arguments of each, in a section of its own.

    >>> kimi_calls([{"id": "functions.f:0", "function": {"name": "f", "arguments": "{}"}}])[:51]
    '<|tool_calls_section_begin|><|tool_call_begin|>func'
    """
    if not isinstance(calls, list):
        return ""
    written = [
        f"<|tool_call_begin|>{call['id']}<|tool_call_argument_begin|>"
        f"{call['function']['arguments']}<|tool_call_end|>"
        for call in calls
    ]
    return f"<|tool_calls_section_begin|>{''.join(written)}<|tool_calls_section_end|>"
