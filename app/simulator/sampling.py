"""Judges `sampling_params`: which keys exist in 0.5.23 and which values they may have.

Owns the list of keys and the texts of the refusals; what is obeyed ends in `Sampling`.
"""

import math
from collections.abc import Callable
from typing import Any

from app.simulator.jobs import Sampling
from app.simulator.refusals import BodyRefusedError, RequestRefusedError

KNOWN_KEYS = (
    *("max_new_tokens", "stop", "stop_token_ids", "stop_regex", "temperature", "top_p", "top_k"),
    *("min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "min_new_tokens"),
    *("n", "json_schema", "regex", "ebnf", "structural_tag", "ignore_eos", "skip_special_tokens"),
    *("spaces_between_special_tokens", "no_stop_trim", "stream_interval", "logit_bias"),
    *("sampling_seed", "custom_params", "beam_width", "watermark", "choice"),
)
DEFAULT_MAX_NEW_TOKENS = 128

_RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("temperature", lambda v: v >= 0 and math.isfinite(v), "be a non-negative finite number"),
    ("top_p", lambda v: 0 < v <= 1, "be in (0, 1]"),
    ("min_p", lambda v: 0 <= v <= 1, "be in [0, 1]"),
    ("top_k", lambda v: v == -1 or v >= 1, "be -1 (disable) or at least 1"),
    ("frequency_penalty", lambda v: -2 <= v <= 2, "be in [-2, 2]"),  # noqa: PLR2004 - its range
    ("presence_penalty", lambda v: -2 <= v <= 2, "be in [-2, 2]"),  # noqa: PLR2004 - its range
    ("repetition_penalty", lambda v: 0 < v <= 2, "be in (0, 2]"),  # noqa: PLR2004 - its range
    ("max_new_tokens", lambda v: v >= 0, "be at least 0"),
    ("min_new_tokens", lambda v: v >= 0, "be at least 0"),
    ("stream_interval", lambda v: v >= 1, "be at least 1"),
)


def check_keys(params: dict[str, Any]) -> None:
    """Raise the 400 for the first key that 0.5.23 does not know."""
    for key in params:
        if key not in KNOWN_KEYS:
            known = ", ".join(f"`{name}`" for name in KNOWN_KEYS)
            raise BodyRefusedError(
                400, {"error": f"unknown field `{key}`, expected one of {known}"}
            )


def read_sampling(params: dict[str, Any]) -> Sampling:
    for name, fits, rule in _RANGES:
        value = params.get(name)
        if value is not None and (not isinstance(value, int | float) or not fits(value)):
            raise RequestRefusedError(f"{name} must {rule}, got {value}.")
    asked = params.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)
    least = params.get("min_new_tokens") or 0
    if asked is not None and least > asked:
        raise RequestRefusedError(
            f"min_new_tokens must be in [0, max_new_tokens({asked})], got {least}."
        )
    stop = params.get("stop") or ()
    return Sampling(
        max_new_tokens=asked,
        min_new_tokens=least,
        ignore_eos=bool(params.get("ignore_eos", False)),
        stop_token_ids=frozenset(params.get("stop_token_ids") or ()),
        stop_strings=(stop,) if isinstance(stop, str) else tuple(stop),
        no_stop_trim=bool(params.get("no_stop_trim", False)),
        skip_special_tokens=bool(params.get("skip_special_tokens", True)),
        stream_interval_tokens=params.get("stream_interval"),
    )
