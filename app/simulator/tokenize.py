"""The routes /tokenize and /detokenize of the toy tokenizer.

Owns their bodies; the tokenizer itself is elsewhere. Exactly one of `prompt` and `messages`.
"""

from typing import Any

from app.simulator.refusals import BodyRefusedError, object_error
from app.simulator.settings import SimulatorSettings
from app.simulator.tokenizer import (
    ASSISTANT_MARK,
    BOS_ID,
    TemplateRefusedError,
    decode,
    encode,
    encode_chat,
    encode_marked,
    encode_thinking_chat,
)


def _refuse(message: str) -> BodyRefusedError:
    return BodyRefusedError(400, object_error(400, message, "BadRequest"))


def tokenize(body: dict[str, Any], settings: SimulatorSettings) -> dict[str, Any]:
    prompt, messages = body.get("prompt"), body.get("messages")
    if (prompt is None) == (messages is None):
        raise _refuse("Exactly one of 'prompt' or 'messages' must be provided.")
    if messages is not None:
        tokens = _chat(body, messages, settings)
        return {"tokens": tokens, "count": len(tokens), "max_model_len": settings.context_length}
    begin = [BOS_ID] if body.get("add_special_tokens", True) else []
    many = isinstance(prompt, list)
    prompts: list[object] = list(prompt) if isinstance(prompt, list) else [prompt]
    coded = encode_marked if settings.template == "toy-thinking" else encode
    lists = [[*begin, *coded(str(one))] for one in prompts]
    return {
        "tokens": lists if many else lists[0],
        "count": [len(tokens) for tokens in lists] if many else len(lists[0]),
        "max_model_len": settings.context_length,
    }


def _chat(body: dict[str, Any], messages: Any, settings: SimulatorSettings) -> list[int]:
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise _refuse("'messages' must be a list of objects with role and content.")
    if settings.template == "toy-thinking":
        kwargs = body.get("chat_template_kwargs") or {}
        return encode_thinking_chat(messages, thinking=bool(kwargs.get("thinking", True)))
    try:
        ids = encode_chat(messages, strict=settings.template == "toy-strict")
    except TemplateRefusedError as error:
        raise _refuse(f"Failed to apply chat template: {error}") from None
    if body.get("continue_final_message") and messages:
        # The last message stays open: neither its line end nor the assistant mark is written.
        ids = ids[: -len(encode("\n" + ASSISTANT_MARK))]
    elif body.get("add_generation_prompt") is False:
        ids = ids[: -len(encode(ASSISTANT_MARK))]
    return ids


def detokenize(body: dict[str, Any], settings: SimulatorSettings) -> dict[str, Any]:
    tokens = body.get("tokens")
    if not isinstance(tokens, list):
        raise _refuse("'tokens' must be a list of ids, or of lists of ids.")
    many = bool(tokens) and isinstance(tokens[0], list)
    skip = bool(body.get("skip_special_tokens", True))
    texts = [_text(ids, settings, skip=skip) for ids in (tokens if many else [tokens])]
    return {"text": texts if many else texts[0]}


def _text(ids: Any, settings: SimulatorSettings, *, skip: bool) -> str:
    known = range(settings.vocabulary_size)
    if not isinstance(ids, list) or not all(type(i) is int and i in known for i in ids):
        raise _refuse(f"'tokens' must hold ids from 0 to {settings.vocabulary_size - 1}.")
    return decode(ids, vocabulary_size=settings.vocabulary_size, skip_special=skip)
