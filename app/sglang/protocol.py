"""Bodies that we send, and what a server says of itself, across versions.

Owns field names and version differences (0.4.9 to 0.5.23). An unknown sampling key is a 400 from
0.5.22 on and a 500 before, so only keys of the allow-list leave this module.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Mapping

import orjson

from app.core.types import ServerFacts
from app.errors import InputError

# Keys of `sampling_params` that every version since 0.4.9 knows, or since the one given.
SAMPLING_SINCE: dict[str, tuple[int, ...]] = {
    "temperature": (0,),
    "top_p": (0,),
    "top_k": (0,),
    "min_p": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (0,),
    "stop": (0,),
    "stop_token_ids": (0,),
    "ignore_eos": (0,),
    "min_new_tokens": (0,),
    "skip_special_tokens": (0,),
    "no_stop_trim": (0,),
    "json_schema": (0,),
    "regex": (0,),
    "ebnf": (0,),
    "logit_bias": (0,),
    "stop_regex": (0, 5, 3),
    "sampling_seed": (0, 5, 3),
}
_SECRET_WORDS = ("api_key", "password", "secret", "token_key", "watermark_key", "launch_command")
# Not the random seed: a server that is given none draws another one at each start.
_ANSWER_SETTINGS = (
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "speculative_algorithm",
    "speculative_draft_model_path",
    "enable_deterministic_inference",
    "lora_paths",
    "json_model_override_args",
)


def version_tuple(version: str | None) -> tuple[int, ...]:
    """Return the leading numbers of a version.

    >>> version_tuple("0.5.4.post3")
    (0, 5, 4)
    """
    numbers: list[int] = []
    for part in (version or "").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def check_sampling(sampling: Mapping[str, object], version: str | None) -> None:
    """Raise InputError for keys that this server's version does not know."""
    known = version_tuple(version) or (999,)
    for key in sampling:
        since = SAMPLING_SINCE.get(key)
        if since is None:
            raise InputError(
                f"sampling parameter {key!r} is not one that Longwatch sends",
                hint=f"Known ones: {', '.join(sorted(SAMPLING_SINCE))}",
            )
        if known < since:
            raise InputError(
                f"sampling parameter {key!r} needs SGLang {'.'.join(map(str, since))} or newer,"
                f" the server is {version}",
                hint="Leave it out or upgrade the server",
            )


def generate_body(
    *,
    rid: str,
    prompt: array[int],
    held: array[int],
    max_new_tokens: int,
    sampling: Mapping[str, object],
    stream_interval: int,
) -> bytes:
    """Return the body of one streamed request: prompt, then the ids that are already there.

    `max_new_tokens` is the whole answer's; what is held is taken off here.
    """
    parameters: dict[str, object] = {
        **sampling,
        "max_new_tokens": max_new_tokens - len(held),
        "stream_interval": stream_interval,
    }
    least = sampling.get("min_new_tokens")
    if isinstance(least, int):
        parameters["min_new_tokens"] = max(0, least - len(held))
    return orjson.dumps(
        {
            "rid": rid,
            "input_ids": [*prompt, *held],
            "sampling_params": parameters,
            "stream": True,
        }
    )


def without_secrets(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return a server's arguments without keys and passwords, which it reports in clear."""
    return {
        key: _inner_without_secrets(value)
        for key, value in arguments.items()
        if not any(word in key.lower() for word in _SECRET_WORDS)
    }


def _inner_without_secrets(value: object) -> object:
    if isinstance(value, dict):
        return without_secrets(value)
    return [_inner_without_secrets(each) for each in value] if isinstance(value, list) else value


def facts_from(
    info: Mapping[str, object] | None,
    model: Mapping[str, object] | None,
    models: Mapping[str, object] | None,
) -> ServerFacts:
    """Put together what `/server_info`, `/model_info` and `/v1/models` say; None: no such route."""
    info = info or {}
    model = model or {}
    arguments = without_secrets({k: v for k, v in info.items() if k != "internal_states"})
    context = _context_tokens(info, models)
    return ServerFacts(
        version=_text(info, "version"),
        model_path=_text(model, "model_path") or _text(info, "model_path"),
        tokenizer_path=_text(model, "tokenizer_path") or _text(info, "tokenizer_path"),
        weight_version=_text(model, "weight_version") or _text(info, "weight_version"),
        context_tokens=context,
        max_prompt_tokens=_number(info, "max_req_input_len"),
        kv_capacity_tokens=_kv_capacity(info),
        max_running=_max_running(info),
        vocabulary_size=_number(model, "vocab_size") or _number(info, "vocab_size"),
        reserved_tokens=_reserved(info),
        incremental=bool(info.get("incremental_streaming_output") or info.get("stream_output")),
        has_tokenizer=not info.get("skip_tokenizer_init"),
        simulated_time_factor=_factor(info),
        answer_settings={key: info[key] for key in _ANSWER_SETTINGS if info.get(key) is not None},
        arguments=arguments,
    )


def _text(source: Mapping[str, object], key: str) -> str | None:
    value = source.get(key)
    return value if isinstance(value, str) else None


def _number(source: Mapping[str, object], key: str) -> int | None:
    value = source.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _factor(info: Mapping[str, object]) -> float | None:
    """Return how fast the time of our own simulator runs; a real server says nothing of it."""
    value = info.get("simulated_time_factor")
    return float(value) if isinstance(value, int | float) else None


def _context_tokens(info: Mapping[str, object], models: Mapping[str, object] | None) -> int | None:
    listed = models.get("data") if models else None
    if isinstance(listed, list) and listed and isinstance(listed[0], dict):
        found = _number(listed[0], "max_model_len")
        if found is not None:
            return found
    return _number(info, "context_length")


def _states(info: Mapping[str, object]) -> list[Mapping[str, object]]:
    states = info.get("internal_states")
    return (
        [state for state in states if isinstance(state, dict)] if isinstance(states, list) else []
    )


def _kv_capacity(info: Mapping[str, object]) -> int | None:
    """Sum the pools of all data-parallel ranks; the top-level figure is the first rank's only."""
    capacities = [
        _number(usage, "token_capacity")
        for state in _states(info)
        if isinstance(usage := state.get("memory_usage"), dict)
    ]
    known = [capacity for capacity in capacities if capacity is not None]
    return sum(known) if known else _number(info, "max_total_num_tokens")


def _max_running(info: Mapping[str, object]) -> int | None:
    per_rank = [_number(s, "effective_max_running_requests_per_dp") for s in _states(info)]
    known = [n for n in per_rank if n is not None]
    return sum(known) if known else _number(info, "max_running_requests")


def _reserved(info: Mapping[str, object]) -> int:
    """Return the context slots that speculative drafting takes from each request."""
    if not info.get("speculative_algorithm"):
        return 0
    steps = _number(info, "speculative_num_steps") or 0
    top_k = _number(info, "speculative_eagle_topk") or 0
    drafts = _number(info, "speculative_num_draft_tokens") or 0
    return max(steps * top_k, drafts)
