"""The page of servers as a sheet: a card with gauges, what the server is, and what is not known.

Owns which facts of a server are shown and what is said of a figure that is missing. Pure.
Invariant: a fact that the server did not tell is a dash with the reason beside it, never a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.clock import iso
from app.core import format as words
from app.core.loads import LoadSource, ServerLoad
from app.figures import RunFigures
from app.web import head, panels
from app.web.draft import Draft
from app.web.sheet import Block, Sheet
from app.web.wording import DASH, moment, rate

_MAX_VALUE_CHARS = 400
_UNTOLD = "the server did not tell"
_METRICS = "start the server with --enable-metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the ledger holds of a server. `facts` are those of its last connection, secrets gone.

    `happened`: number, moment, event and words of entries of the activity list, newest first.
    """

    facts: Mapping[str, object] = field(default_factory=dict)
    checked_at: datetime | None = None
    last_good_at: datetime | None = None
    happened: tuple[tuple[int, datetime, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The structure of a card. `facts`: name, value, title; `missing`: figures and the remedy."""

    key: str
    facts: tuple[tuple[str, str, str], ...]
    missing: tuple[tuple[str, str], ...]
    happened: tuple[tuple[str, str, str, str, str], ...]
    arguments: tuple[tuple[str, str], ...]
    checked: tuple[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    run_id: int
    n_servers: int


def server_page(run: RunFigures, told: Mapping[str, Told]) -> Sheet:
    """Return the page; `told` is by address."""
    draft = Draft(run.at)
    draft.text("srv-own", _speed(run.speed_tokens_per_s))
    idle = "" if run.speed_tokens_per_s is not None else "nothing of this run is being answered"
    draft.attr("srv-own", title=idle)
    known = [load.tokens_per_s for load in run.servers if load.tokens_per_s is not None]
    is_all = bool(known) and len(known) == len(run.servers)
    draft.text("srv-sum", _speed(sum(known) if is_all else None))
    why = "" if is_all else "not every server tells its own speed"
    draft.attr("srv-sum", title=why)
    gauges = panels.servers(draft, run).children
    cards = tuple(
        _card(draft, run, n, load, told.get(load.url, Told()), (gauge,))
        for n, (load, gauge) in enumerate(zip(run.servers, gauges, strict=True))
    )
    root = Block(
        id="page",
        template="server_page/page.html",
        about=About(run_id=run.run_id, n_servers=len(cards)),
        children=(head.signals(draft, run, "Server"), head.banner(draft, run), *cards),
    )
    return draft.sheet(root, f"Server · {words.one_line(run.name)}")


def _speed(tokens_per_s: float | None) -> str:
    return DASH if tokens_per_s is None else f"{rate(tokens_per_s)} tok/s"


def _card(
    draft: Draft,
    run: RunFigures,
    n: int,
    load: ServerLoad,
    told: Told,
    children: tuple[Block, ...],
) -> Block:
    key = f"srv{n}"
    draft.text(f"{key}-since", _since(run.at, load, told))
    draft.text(f"{key}-seen", DASH if load.at is None else words.age(load.at, run.at))
    draft.attr(f"{key}-seen", title=load.trouble if load.at is None else "")
    about = Card(
        key=key,
        facts=tuple(_facts(load, told.facts)),
        missing=tuple(_missing(load)),
        happened=tuple(
            (
                f"/runs/{run.run_id}/activity?at={number}#e{number}",
                iso(at),
                moment(at, run.at),
                event,
                words.one_line(detail).replace(" -> ", " → "),
            )
            for number, at, event, detail in told.happened
        ),
        arguments=_arguments(told.facts.get("arguments")),
        checked=None
        if told.checked_at is None
        else (iso(told.checked_at), moment(told.checked_at, run.at)),
    )
    return Block(id=key, template="server_page/card.html", about=about, children=children)


def _since(now: datetime, load: ServerLoad, told: Told) -> str:
    """Say since when it answers, as far as anybody here knows."""
    if load.away_since is not None:
        return f"has not answered for {words.span_of(load.away_since, now)}"
    if load.started_at is not None:
        restarts = words.plural(load.n_restarts, "restart")
        return f"{words.span_of(load.started_at, now)} since its last start ({restarts} seen)"
    if load.at is None and told.last_good_at is not None:
        return f"last answered {words.age(told.last_good_at, now)}"
    return "answers; no restart was seen" if load.at is not None else DASH


def _facts(load: ServerLoad, facts: Mapping[str, object]) -> Sequence[tuple[str, str, str]]:
    incremental = facts.get("incremental")
    stream = None if incremental is None else "only what is new" if incremental else "all so far"
    named = (
        ("Model", load.model_path or facts.get("model_path")),
        ("Weights", facts.get("weight_version")),
        ("Tokenizer", facts.get("tokenizer_path")),
        ("SGLang", load.version or facts.get("version")),
        ("Context length", _count(facts.get("context_tokens"), "tokens")),
        ("Longest prompt", _count(facts.get("max_prompt_tokens"), "tokens")),
        ("KV cache holds", _count(facts.get("kv_capacity_tokens"), "tokens")),
        ("At most at once", _count(facts.get("max_running"), "requests")),
        ("Vocabulary", _count(facts.get("vocabulary_size"), "tokens")),
        ("Chunks of a stream hold", stream),
    )
    why = _UNTOLD if facts else "it was not reached yet"
    return [
        (name, words.one_line(str(value)), "") if value not in (None, "") else (name, DASH, why)
        for name, value in named
    ]


def _count(value: object, unit: str) -> str | None:
    return f"{value:,} {unit}" if isinstance(value, int) else None


def _missing(load: ServerLoad) -> Sequence[tuple[str, str]]:
    """Say which figures are missing, and what to start the server with to have them."""
    if load.at is None:
        return [("all figures", load.trouble or "it was not asked yet")]
    figures = (
        ("KV cache", load.kv_used_tokens if load.used_ratio is None else load.used_ratio),
        ("requests that run", load.running_requests),
        ("requests that wait", load.waiting_requests),
        ("its own speed", load.tokens_per_s),
        ("prefix-cache hits", load.prefix_hit_ratio),
        ("time to the first token", load.first_token_p50_s),
        ("retracted requests", load.retracted_requests),
    )
    absent = [name for name, value in figures if value is None]
    if not absent:
        return []
    if load.source is not LoadSource.METRICS:
        return [(", ".join(absent), _METRICS)]
    return [(", ".join(absent), load.trouble or "nothing to count yet, or its version has none")]


def _arguments(given: object) -> tuple[tuple[str, str], ...]:
    """Return what the server was started with, in order of the names; long values are cut."""
    if not isinstance(given, Mapping):
        return ()
    return tuple(
        (words.one_line(str(name)), words.one_line(str(given[name]))[:_MAX_VALUE_CHARS])
        for name in sorted(given, key=str)
    )
