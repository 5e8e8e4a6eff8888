"""What a server's /v1/loads says of its load (0.5.8 on), as the same reading as /metrics gives.

Owns its field names. It needs no --enable-metrics, but without it the throughput in it stays 0, so
that a 0 there is not known. Invariant: a figure that one rank does not tell is None for all.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from app.core.loads import LoadSource
from app.errors import ServerError
from app.sglang.bodies import parse_json
from app.sglang.reading import Counter, Reading

_Rank = Mapping[str, object]


def read_loads(body: bytes) -> Reading | None:
    """Return what the body says, None if it lists no rank; ServerError if it is no such answer."""
    try:
        content = parse_json(body)
    except ValueError as error:
        raise ServerError("/v1/loads is no JSON") from error
    ranks = _ranks(content)
    if not ranks or not isinstance(content, dict):
        return None
    version = content.get("version")
    prefill = _sum(ranks, "total_prefill_uncached_tokens")
    return Reading(
        source=LoadSource.LOADS,
        n_ranks=len(ranks),
        version=version if isinstance(version, str) else None,
        running_requests=_whole(ranks, "num_running_reqs"),
        waiting_requests=_whole(ranks, "num_waiting_reqs"),
        max_running_requests=_whole(ranks, "max_running_requests"),
        kv_capacity_tokens=_whole(ranks, "max_total_num_tokens"),
        kv_used_tokens=_whole(ranks, "num_used_tokens"),
        used_ratio=max(_known(ranks, "token_usage"), default=None),
        throughput_tokens_per_s=_sum(ranks, "gen_throughput") or None,
        counters={} if prefill is None else {Counter.LOADS_PREFILL: prefill},
        progress=tuple(_progress(rank) for rank in ranks),
    )


def _ranks(content: object) -> list[_Rank]:
    listed = content.get("loads") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        return []
    return [rank for rank in listed if isinstance(rank, dict)]


def _known(ranks: Sequence[_Rank], name: str) -> list[float]:
    values = [rank.get(name) for rank in ranks]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return [number for number in numbers if isfinite(number)]


def _sum(ranks: Sequence[_Rank], name: str) -> float | None:
    known = _known(ranks, name)
    return sum(known) if len(known) == len(ranks) else None


def _whole(ranks: Sequence[_Rank], name: str) -> int | None:
    total = _sum(ranks, name)
    return None if total is None else round(total)


def _progress(rank: _Rank) -> str:
    """Return what moves with the scheduler: token counts, and the moments of its decode steps."""
    names = ("total_prefill_uncached_tokens", "decode_moments", "num_used_tokens")
    return "|".join(repr(rank.get(name)) for name in names)
