"""The toy tokenizer and chat template of the simulated model.

Byte b is id b+3; 0 pads, 1 begins, 2 ends; 259 and 260 open and close thinking; words follow.
`encode` yields bytes only, so text makes a round trip; words come only out of the simulated model.
Pure: no clock, no files.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.simulator.words import FIRST_WORD_ID, lexicon

PADDING_ID, BOS_ID, END_ID = 0, 1, 2
BYTE_OFFSET = 3
THINK_OPEN_ID, THINK_CLOSE_ID = 259, 260
DEFAULT_VOCABULARY_SIZE = 2048
SPECIAL_TEXTS = {
    PADDING_ID: "<|pad|>",
    BOS_ID: "<|bos|>",
    END_ID: "<|end|>",
    THINK_OPEN_ID: "<think>",
    THINK_CLOSE_ID: "</think>",
}
ASSISTANT_MARK = "assistant:"
_IDS = {text: token for token, text in SPECIAL_TEXTS.items()}
_SPECIAL = re.compile(f"({'|'.join(map(re.escape, _IDS))})")


class TemplateRefusedError(ValueError):
    """The strict template does not accept these messages."""


def encode(text: str) -> list[int]:
    return [byte + BYTE_OFFSET for byte in text.encode("utf-8", "surrogatepass")]


def encode_marked(text: str) -> list[int]:
    """Return the ids of a text in which the special texts are their own ids, as real ones do it."""
    ids: list[int] = []
    for part in _SPECIAL.split(text):
        ids += [_IDS[part]] if part in _IDS else encode(part)
    return ids


@lru_cache(maxsize=8)
def token_bytes(vocabulary_size: int = DEFAULT_VOCABULARY_SIZE) -> tuple[bytes, ...]:
    """Return what each id stands for; special marks stand for nothing, thinking marks for text."""
    marks = {PADDING_ID: b"", BOS_ID: b"", END_ID: b""}
    plain = [marks.get(token, bytes([max(0, token - BYTE_OFFSET)])) for token in range(259)]
    thinking = [SPECIAL_TEXTS[THINK_OPEN_ID].encode(), SPECIAL_TEXTS[THINK_CLOSE_ID].encode()]
    words = [text.encode() for text in lexicon(vocabulary_size).texts]
    return (*plain, *thinking, *words)


def decode_bytes(
    ids: Iterable[int], *, vocabulary_size: int = DEFAULT_VOCABULARY_SIZE, skip_special: bool = True
) -> bytes:
    table = token_bytes(vocabulary_size)
    if skip_special:
        return b"".join(map(table.__getitem__, ids))
    return b"".join(
        SPECIAL_TEXTS[token].encode() if token in SPECIAL_TEXTS else table[token] for token in ids
    )


def decode(
    ids: Iterable[int], *, vocabulary_size: int = DEFAULT_VOCABULARY_SIZE, skip_special: bool = True
) -> str:
    raw = decode_bytes(ids, vocabulary_size=vocabulary_size, skip_special=skip_special)
    return raw.decode("utf-8", "replace")


def content_text(content: object) -> str:
    """Return the text of a message: a string, or the text parts of a list joined."""
    if isinstance(content, list):
        return "".join(
            str(part.get("text", "")) if isinstance(part, Mapping) else str(part)
            for part in content
        )
    return "" if content is None else str(content)


def render_chat(messages: Sequence[Mapping[str, Any]], *, strict: bool = False) -> str:
    """Return the text of the template without the leading `<|bos|>`."""
    if strict:
        _check_strict(messages)
    lines = [f"{m.get('role', 'user')}:{content_text(m.get('content'))}\n" for m in messages]
    return "".join(lines) + ASSISTANT_MARK


def encode_chat(messages: Sequence[Mapping[str, Any]], *, strict: bool = False) -> list[int]:
    return [BOS_ID, *encode(render_chat(messages, strict=strict))]


def encode_thinking_chat(messages: Sequence[Mapping[str, Any]], *, thinking: bool) -> list[int]:
    """Return a chat whose generation prompt opens reasoning, or opens and closes it at once."""
    begun = [THINK_OPEN_ID] if thinking else [THINK_OPEN_ID, THINK_CLOSE_ID]
    return [BOS_ID, *encode_marked(render_chat(messages)), *begun]


def _check_strict(messages: Sequence[Mapping[str, Any]]) -> None:
    for position, message in enumerate(messages):
        role = message.get("role")
        if role == "system":
            raise TemplateRefusedError("System role not supported")
        if role != ("user" if position % 2 == 0 else "assistant"):
            raise TemplateRefusedError(
                "Conversation roles must alternate user/assistant/user/assistant/..."
            )


__all__ = [
    "ASSISTANT_MARK",
    "BOS_ID",
    "BYTE_OFFSET",
    "DEFAULT_VOCABULARY_SIZE",
    "END_ID",
    "FIRST_WORD_ID",
    "PADDING_ID",
    "SPECIAL_TEXTS",
    "THINK_CLOSE_ID",
    "THINK_OPEN_ID",
    "TemplateRefusedError",
    "content_text",
    "decode",
    "decode_bytes",
    "encode",
    "encode_chat",
    "encode_marked",
    "encode_thinking_chat",
    "render_chat",
    "token_bytes",
]
