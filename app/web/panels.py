"""The panels under the table: the inference servers, and what happened (activity).

Owns which figure of a server is shown and what stands where it is not known. Pure.
Invariant: missing is not zero: a dash with the reason in its title.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.clock import iso
from app.core import format as words
from app.core.loads import LoadSource, ServerLoad
from app.core.types import PartitionId
from app.figures import RunFigures
from app.ledger.activity import Activity
from app.web.draft import Draft
from app.web.sheet import Block
from app.web.wording import DASH, moment, percent, rate, seconds

_STALE_AFTER_S = 15.0
_NO_METRICS = "not available: start the server with --enable-metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The structure of a server's card."""

    key: str
    url: str
    has_pool: bool
    has_use: bool
    has_limit: bool
    has_hits: bool
    is_retracting: bool
    is_stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the activity list."""

    id: int
    iso_at: str
    clock: str
    who: str
    event: str
    detail: str


def servers(draft: Draft, run: RunFigures) -> Block:
    """Return a card for each server of the run."""
    children = tuple(_server(draft, run, n, load) for n, load in enumerate(run.servers))
    return Block(id="servers", template="overview/servers.html", children=children)


def _server(draft: Draft, run: RunFigures, n: int, load: ServerLoad) -> Block:
    key = f"s{n}"
    has_pool = _pool(draft, key, load)
    has_use = not has_pool and load.used_ratio is not None
    has_limit = load.running_requests is not None and bool(load.max_running_requests)
    has_hits = load.prefix_hit_ratio is not None
    _figures(draft, key, load)
    if has_use:
        used = (load.used_ratio or 0.0) * 100
        draft.attr(f"{key}-use", width=f"{used:.1f}")
        _meter(draft, f"{key}-usem", used, f"{used:.0f} % in use")
    if has_limit and load.running_requests is not None:
        full = 100 * load.running_requests / (load.max_running_requests or 1)
        draft.attr(f"{key}-runb", width=f"{min(full, 100.0):.1f}")
        _meter(draft, f"{key}-runm", full, _running(load))
    if load.prefix_hit_ratio is not None:
        hits = load.prefix_hit_ratio * 100
        draft.attr(f"{key}-hitb", width=f"{hits:.1f}")
        _meter(draft, f"{key}-hitm", hits, f"{hits:.0f} %")
    about = Server(
        key=key,
        url=load.url,
        has_pool=has_pool,
        has_use=has_use,
        has_limit=has_limit,
        has_hits=has_hits,
        is_retracting=bool(load.retracted_requests),
        is_stale=_age_s(run.at, load) > _STALE_AFTER_S,
    )
    draft.text(f"{key}-age", _freshness(run.at, load))
    return Block(id=key, template="overview/server.html", about=about)


def _meter(draft: Draft, name: str, value: float, said: str) -> None:
    now = str(round(max(0.0, min(100.0, value))))
    draft.attr(name, aria_valuenow=now, aria_valuetext=said)


def _pool(draft: Draft, key: str, load: ServerLoad) -> bool:
    """Draw used, reclaimable and free of the KV pool; False where the server does not tell."""
    parts = (load.kv_used_tokens, load.kv_reclaimable_tokens, load.kv_free_tokens)
    used, reclaimable, free = parts
    if used is None or reclaimable is None or free is None or not used + reclaimable + free:
        return False
    total = load.kv_capacity_tokens or used + reclaimable + free
    shares = [100 * part / max(total, used + reclaimable + free) for part in (used, reclaimable)]
    draft.attr(f"{key}-ku", width=f"{shares[0]:.1f}")
    draft.attr(f"{key}-ke", x=f"{shares[0]:.1f}", width=f"{shares[1]:.1f}")
    said = f"{shares[0]:.0f} % used, {shares[1]:.0f} % cached and reclaimable"
    _meter(draft, f"{key}-kvm", shares[0], said)
    return True


def _figures(draft: Draft, key: str, load: ServerLoad) -> None:
    draft.text(f"{key}-kv", _kv(load))
    draft.attr(f"{key}-kv", title=_kv_exact(load))
    retracted, waiting = load.retracted_requests, load.waiting_requests
    first = f"{_wait(load.first_token_p50_s, is_more=load.first_token_p50_is_more)} / "
    first += _wait(load.first_token_p99_s, is_more=load.first_token_p99_is_more)
    for name, said in (
        ("run", _running(load)),
        ("wait", DASH if waiting is None else f"{waiting:,}"),
        ("tps", rate(load.tokens_per_s)),
        ("hit", percent(load.prefix_hit_ratio)),
        ("ttft", first if load.n_first_tokens else DASH),
        ("retr", DASH if retracted is None else f"{retracted:,}"),
    ):
        draft.text(f"{key}-{name}", said)
        draft.attr(f"{key}-{name}", title=(load.trouble or _NO_METRICS) if said == DASH else "")
    draft.text(f"{key}-what", _what(load))


def _wait(value_s: float | None, *, is_more: bool) -> str:
    return f"> {seconds(value_s)}" if is_more else seconds(value_s)


def _kv(load: ServerLoad) -> str:
    used, reclaimable, free = load.kv_used_tokens, load.kv_reclaimable_tokens, load.kv_free_tokens
    if used is not None and reclaimable is not None and free is not None:
        total = max(1, used + reclaimable + free)
        shares = [round(100 * part / total) for part in (used, reclaimable)]
        return f"{shares[0]} % used · {shares[1]} % reclaimable · {100 - sum(shares)} % free"
    if load.used_ratio is not None:
        return f"{percent(load.used_ratio)} in use (without cache)"
    return DASH


def _kv_exact(load: ServerLoad) -> str:
    if load.kv_capacity_tokens is None:
        return ""
    used = "" if load.kv_used_tokens is None else f"{load.kv_used_tokens:,} of "
    return f"{used}{load.kv_capacity_tokens:,} tokens"


def _running(load: ServerLoad) -> str:
    if load.running_requests is None:
        return DASH
    limit = load.max_running_requests
    return f"{load.running_requests:,}" + (f" of {limit:,}" if limit else "")


def _what(load: ServerLoad) -> str:
    version = f"SGLang {load.version}" if load.version else "version not known"
    if load.simulated_time_factor is not None:
        return f"simulated {version}, {load.simulated_time_factor:g} times as fast as a real one"
    return f"{version} · {load.model_path}" if load.model_path else version


def _age_s(now: datetime, load: ServerLoad) -> float:
    return 0.0 if load.at is None else (now - load.at).total_seconds()


def _freshness(now: datetime, load: ServerLoad) -> str:
    """Say where the figures come from and, once they are old, how old they are."""
    if load.away_since is not None:
        return f"has not answered for {words.span((now - load.away_since).total_seconds())}"
    if load.at is None:
        return load.trouble or "no figures yet"
    source = "" if load.source is LoadSource.METRICS else f"from {load.source}"
    age_s = _age_s(now, load)
    if age_s > _STALE_AFTER_S:
        return f"{words.span(age_s)} old" + (f": {load.trouble}" if load.trouble else "")
    return source


def activity(draft: Draft, entries: Sequence[Activity], names: Mapping[PartitionId, str]) -> Block:
    """Return what happened last, newest first."""
    shown = tuple(_entry(draft, each, names) for each in entries)
    return Block(id="activity", template="overview/activity.html", about=shown)


def _entry(draft: Draft, entry: Activity, names: Mapping[PartitionId, str]) -> Entry:
    where = "" if entry.partition_id is None else names.get(entry.partition_id, "")
    detail = words.one_line(entry.detail).replace(" -> ", " → ")
    if where and where not in detail:
        detail = f"{where}: {detail}" if detail else where
    return Entry(
        id=entry.id,
        iso_at=iso(entry.at),
        clock=moment(entry.at, draft.now),
        who=words.one_line(entry.who),
        event=words.one_line(entry.event),
        detail=detail,
    )
