"""How many of an unfinished answer's tokens the next attempt may build on.

Sending prompt + tokens continues an answer with the same conditional distribution only if model,
weights and sampling are the same, and nothing counts or matches over the boundary: penalties and
grammars start afresh on the server, a stop string that straddles it would be missed.
"""

from collections.abc import Mapping, Sequence

from app.core.types import Segment

# A continuation under these would not be what the uninterrupted answer is.
_STATEFUL = frozenset(
    {
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "json_schema",
        "regex",
        "ebnf",
        "stop_regex",
    }
)
_NEUTRAL: dict[str, object] = {
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "repetition_penalty": 1,
}


def may_continue(sampling: Mapping[str, object]) -> bool:
    """Return whether answers under these parameters may be continued at all.

    >>> may_continue({"temperature": 1.0, "repetition_penalty": 1.0})
    True
    >>> may_continue({"repetition_penalty": 1.1})
    False
    """
    return not any(
        name in _STATEFUL and value is not None and value != _NEUTRAL.get(name)
        for name, value in sampling.items()
    )


def stop_tail_tokens(sampling: Mapping[str, object]) -> int:
    """Return how many last tokens to drop, so that no stop string is missed at the boundary.

    A token is at least one byte, so the longest string's bytes are enough.
    """
    stop = sampling.get("stop")
    strings = [stop] if isinstance(stop, str) else stop if isinstance(stop, list | tuple) else []
    return max((len(str(each).encode()) for each in strings), default=0)


def continuable_tokens(
    n_held: int, segments: Sequence[Segment], gen_id: str, sampling: Mapping[str, object]
) -> int:
    """Return how many of the held tokens stay: all, all but a tail, or none."""
    if any(segment.gen_id != gen_id for segment in segments) or not may_continue(sampling):
        return 0
    return max(0, n_held - stop_tail_tokens(sampling))
