"""A `RunSpec` as the TOML that a person would write: what differs from the defaults, and no more.

Owns the order of tables and keys and how values are written. Pure. Invariant: what `parse_spec`
reads of it is the same spec (names of partitions that were only said to be short apart).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields

from app.core.spec import RunSpec

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALES = ((10**9, "G"), (10**6, "M"), (10**3, "k"))
_FIRST = ("name", "server_urls", "prompts_dir", "output_dir")
_RENAMED = {"token_budget_tokens": "token_budget", "class_name": "class"}
# what stands in other tables, or is said otherwise
_ELSEWHERE = frozenset(
    {
        "classes", "partitions", "sampling", "chat_template_kwargs", "samples_per_prompt",
        "short_partitions", "default_token_budget_tokens", "default_max_samples", "thresholds",
    }
)  # fmt: skip


def to_toml(spec: RunSpec) -> str:
    """Return the spec as text, each table with an empty line before it."""
    tables = [_table("run", _run(spec)), _table("defaults", _defaults(spec))]
    tables += [_table(f"class.{_key(name)}", _changed(one)) for name, one in spec.classes.items()]
    tables += [
        _table(f"partition.{_key(name)}", _changed(one)) for name, one in spec.partitions.items()
    ]
    return "\n".join(table for table in tables if table)


def _table(name: str, values: Mapping[str, object]) -> str:
    if not values:
        return ""
    lines = [f"[{name}]", *(f"{_key(key)} = {_value(one)}" for key, one in values.items())]
    return "\n".join(lines) + "\n"


def _run(spec: RunSpec) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(spec, name) for name in _FIRST}
    values |= {key: one for key, one in _changed(spec).items() if key not in {*_FIRST, *_ELSEWHERE}}
    return values | _changed(spec.thresholds)


def _defaults(spec: RunSpec) -> dict[str, object]:
    values = dict(spec.sampling)
    if spec.chat_template_kwargs:
        values["chat_template_kwargs"] = spec.chat_template_kwargs
    if spec.samples_per_prompt > 1:
        values["samples_per_prompt"] = spec.samples_per_prompt
    if spec.default_token_budget_tokens is not None:
        values["token_budget"] = _tokens(spec.default_token_budget_tokens)
    if spec.default_max_samples is not None:
        values["max_samples"] = spec.default_max_samples
    return values


def _changed(value: object) -> dict[str, object]:
    """Return the fields that are not as they would be without a word."""
    found: dict[str, object] = {}
    for one in fields(value):  # type: ignore[arg-type]  # a spec, a class, a partition, thresholds
        if isinstance(value, RunSpec) and one.name in _ELSEWHERE:
            continue
        has = getattr(value, one.name)
        if has is None or (one.default is not MISSING and has == one.default):
            continue
        if one.name == "token_budget_tokens":
            has = _tokens(has)
        found[_RENAMED.get(one.name, one.name)] = has
    return found


def _tokens(n: int) -> object:
    """Return a number of tokens as people write it, never rounded.

    >>> _tokens(10_000_000), _tokens(2_500_000), _tokens(12_345)
    ('10M', '2500k', 12345)
    """
    for scale, unit in _SCALES:
        if n >= scale and n % scale == 0:
            return f"{n // scale}{unit}"
    return n


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_pairs(value)) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return _text(str(value))


def _pairs(value: Mapping[str, object]) -> Iterator[str]:
    for key, one in value.items():
        if one is not None:  # TOML has no word for it
            yield f"{_key(key)} = {_value(one)}"


def _text(value: str) -> str:
    r"""Return a basic string; JSON's escapes are TOML's too, but for the delete character.

    >>> print(_text('a "b"\n\x7f'))
    "a \"b\"\n\u007f"
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
