"""Which sampling parameters a spec or a prompt record may set, and within which bounds.

Owns the names and ranges that SGLang accepts in `sampling_params` and that Longwatch does not set
by itself. What a certain server version takes of them is decided in `sglang/`.
Invariant: what passes here is not refused by a current server for its range.
"""

from collections.abc import Callable, Iterable, Mapping

from app.core.spec_checks import as_shown, did_you_mean

_Check = Callable[[object], bool]
MAX_STOPS = 32
_INT64 = 2**63


def _number(low: float, high: float, *, above: bool = False) -> _Check:
    def is_good(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return (low < value if above else low <= value) and value <= high

    return is_good


def _whole(low: int, high: int) -> _Check:
    return lambda value: type(value) is int and low <= value <= high


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_stop(value: object) -> bool:
    stops = value if isinstance(value, list) else [value]
    return len(stops) <= MAX_STOPS and all(_is_text(stop) for stop in stops)


def _is_ids(value: object) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _is_bias(value: object) -> bool:
    is_weight = _number(-1e9, 1e9)
    return isinstance(value, dict) and all(
        str(key).isdecimal() and is_weight(weight) for key, weight in value.items()
    )


_RULES: dict[str, tuple[str, _Check]] = {
    "temperature": ("a number from 0 to 100", _number(0, 100)),
    "top_p": ("a number above 0, at most 1", _number(0, 1, above=True)),
    "top_k": (
        "a whole number from 1 on, or -1 for all",
        lambda value: value == -1 or _whole(1, _INT64)(value),
    ),
    "min_p": ("a number from 0 to 1", _number(0, 1)),
    "frequency_penalty": ("a number from -2 to 2", _number(-2, 2)),
    "presence_penalty": ("a number from -2 to 2", _number(-2, 2)),
    "repetition_penalty": ("a number above 0, at most 2", _number(0, 2, above=True)),
    "min_new_tokens": ("a whole number from 0 on", _whole(0, 10**7)),
    "stop": (f"a text or a list of at most {MAX_STOPS} texts", _is_stop),
    "stop_token_ids": ("a list of token ids", _is_ids),
    "stop_regex": (f"a text or a list of at most {MAX_STOPS} texts", _is_stop),
    "ignore_eos": ("true or false", _is_flag),
    "skip_special_tokens": ("true or false", _is_flag),
    "spaces_between_special_tokens": ("true or false", _is_flag),
    "no_stop_trim": ("true or false", _is_flag),
    "sampling_seed": ("a whole number", _whole(-_INT64, _INT64 - 1)),
    "json_schema": ("a text", _is_text),
    "regex": ("a text", _is_text),
    "ebnf": ("a text", _is_text),
    "structural_tag": ("a text", _is_text),
    "logit_bias": ("a table of token id = number", _is_bias),
}
SAMPLING_KEYS = frozenset(_RULES)
_GRAMMARS = ("json_schema", "regex", "ebnf", "structural_tag")

# Names that people bring from other interfaces, and what to write instead.
_ELSEWHERE = {
    "n": "is not sent; set samples_per_prompt",
    "seed": 'is called "sampling_seed" by the server',
    "max_tokens": 'is called "max_new_tokens" and belongs to a class or a partition',
    "max_new_tokens": "belongs to a class or a partition",
    "stream": "is always on",
    "stream_interval": "belongs to [run]",
}


def sampling_problems(
    sampling: Mapping[str, object], *, also_known: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """Return (key, complaint) for each parameter that cannot be sent.

    `also_known` are names that the same table may hold, for the hint to a misspelt one.
    """
    known = SAMPLING_KEYS.union(also_known)
    found = [(key, _complaint(key, value, known)) for key, value in sampling.items()]
    problems = [(key, complaint) for key, complaint in found if complaint]
    grammars = [name for name in _GRAMMARS if sampling.get(name)]
    if len(grammars) > 1:
        problems.append((grammars[1], f"cannot be combined with {grammars[0]}; keep one"))
    return problems


def _complaint(key: str, value: object, known: Iterable[str]) -> str:
    if key in _ELSEWHERE:
        return _ELSEWHERE[key]
    if key not in _RULES:
        return f"is not a sampling parameter; {did_you_mean(key, known)}"
    wanted, is_good = _RULES[key]
    return "" if is_good(value) else f"{as_shown(value)} is not {wanted}"
