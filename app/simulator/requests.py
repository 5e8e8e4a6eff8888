"""Reads the body of /generate as SGLang does, without a schema library.

Owns the checks up to the door of the scheduler and their order: JSON, types, sampling keys, then
ranges and lengths. Invariant: a `GenerateRequest` holds ids inside the vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from app.simulator.jobs import Sampling
from app.simulator.refusals import (
    BodyRefusedError,
    PoisonedError,
    RequestRefusedError,
    invalid_body,
    wrong_type,
)
from app.simulator.sampling import read_sampling
from app.simulator.settings import SimulatorSettings
from app.simulator.tokenizer import BOS_ID, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """A body of the right shape; its values are not judged yet."""

    rid: str | None
    input_ids: list[int] | None
    text: str | None
    sampling_params: dict[str, Any]
    stream: bool
    background: bool
    return_prompt_token_ids: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    rid: str
    input_ids: list[int]
    sampling: Sampling
    sampling_params: dict[str, Any]
    stream: bool
    background: bool
    return_prompt_token_ids: bool


def read_body(body: bytes, content_type: str) -> RawRequest:
    """Return the request; raise what a real server answers before it starts a stream."""
    if not body:
        raise invalid_body(wrong_type("missing", (), "Field required", None))
    parsed = _parse(body, content_type)
    rid, stream = parsed.get("rid"), parsed.get("stream", False)
    if rid is not None and not isinstance(rid, str):
        raise invalid_body(
            wrong_type("string_type", ("rid", "str"), "Input should be a valid string", rid),
            wrong_type("list_type", ("rid", "list[str]"), "Input should be a valid list", rid),
        )
    if not isinstance(stream, bool):
        note = "Input should be a valid boolean, unable to interpret input"
        raise invalid_body(wrong_type("bool_parsing", ("stream",), note, stream))
    return RawRequest(
        rid=rid or None,
        input_ids=_read_ids(parsed.get("input_ids")),
        text=_read_text(parsed.get("text")),
        sampling_params=_read_params(parsed.get("sampling_params")),
        stream=stream,
        background=bool(parsed.get("background", False)),
        return_prompt_token_ids=bool(parsed.get("return_prompt_token_ids", False)),
    )


def _parse(body: bytes, content_type: str) -> dict[str, Any]:
    given: Any = body
    if "json" in content_type:
        try:
            given = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            detail = wrong_type("json_invalid", (), "JSON decode error", {})
            detail |= {"loc": ("body", error.pos), "ctx": {"error": error.msg}}
            raise invalid_body(detail) from None
    if not isinstance(given, dict):
        note = "Input should be a dictionary or an instance of GenerateReqInput"
        detail = wrong_type("dataclass_type", (), note, given)
        raise invalid_body(detail | {"ctx": {"class_name": "GenerateReqInput"}})
    return given


def _read_ids(ids: Any) -> list[int] | None:
    if ids is None:
        return None
    if not isinstance(ids, list):
        raise invalid_body(
            wrong_type("list_type", ("input_ids",), "Input should be a valid list", ids)
        )
    kinds = set(map(type, ids))
    if kinds == {list}:
        note = "the simulator serves one prompt per request: send input_ids as one list"
        raise BodyRefusedError(400, {"error": {"message": note}})
    wrong = sorted(kind.__name__ for kind in kinds - {int})
    if wrong:
        note = f"Value error, elements must be int or list; got {wrong[0]}"
        raise invalid_body(wrong_type("value_error", ("input_ids",), note, ids))
    return ids


def _read_text(text: Any) -> str | None:
    if text is not None and not isinstance(text, str):
        raise invalid_body(
            wrong_type("string_type", ("text", "str"), "Input should be a valid string", text)
        )
    return text


def _read_params(params: Any) -> dict[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, dict):
        note = "Input should be a valid dictionary"
        raise invalid_body(wrong_type("dict_type", ("sampling_params", "dict"), note, params))
    return params


def prompt_ids(raw: RawRequest, settings: SimulatorSettings) -> list[int]:
    """Return the ids of the prompt; raise for none, and for those that kill a real server."""
    ids = raw.input_ids
    if ids is None:
        if raw.text is None:
            raise RequestRefusedError("Either text, input_ids or input_embeds should be provided.")
        if not raw.text:
            raise PoisonedError("empty text")
        return [BOS_ID, *encode(raw.text)]
    if not ids:
        raise RequestRefusedError("input_ids cannot be empty.")
    if min(ids) < 0 or max(ids) >= settings.vocabulary_size:
        raise PoisonedError(f"an id outside 0..{settings.vocabulary_size - 1}")
    return ids


def judge(
    raw: RawRequest, rid: str, ids: list[int], settings: SimulatorSettings
) -> GenerateRequest:
    """Return the request ready for the scheduler; raise a refusal for values and lengths."""
    sampling = read_sampling(raw.sampling_params)
    if len(ids) >= settings.context_length:
        raise RequestRefusedError(
            f"The input ({len(ids)} tokens) is longer than the model's context length "
            f"({settings.context_length} tokens)."
        )
    asked = sampling.max_new_tokens
    if asked is not None and len(ids) + asked > settings.context_length:
        raise RequestRefusedError(
            "Requested token count exceeds the model's maximum context length of "
            f"{settings.context_length} tokens. You requested a total of {len(ids) + asked} "
            f"tokens: {len(ids)} tokens from the input messages and {asked} tokens for the "
            "completion. Please reduce the number of tokens in the input messages or the "
            "completion to fit within the limit."
        )
    return GenerateRequest(
        rid=rid,
        input_ids=ids,
        sampling=sampling,
        sampling_params=raw.sampling_params,
        stream=raw.stream,
        background=raw.background,
        return_prompt_token_ids=raw.return_prompt_token_ids,
    )
