"""What two runs are compared by: settings, how far they came, how fast, and what failed.

Owns the lines and what counts as a difference. Pure. Invariant: what one run does not have is None,
never 0, and no difference is told of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.core import format as words
from app.core.estimate import Estimate
from app.core.spec import RunSpec
from app.core.states import RunState
from app.core.types import Counts, Tokens
from app.figures import PartitionFigures, RunFigures
from app.recorder.hindsight import RunPast
from app.web.wording import DASH, left, percent, rate

_PROMPTS, _LONGEST = "prompts@", "max_new_tokens@"
_SHOWN_DIGEST = 12
_MAX_CHARS = 200
_NEARLY_ALL = 99  # per cent
SAME_RATIO = 0.005  # closer than half a per cent is the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs. `fingerprint` is what its answers depend on, `server` of the server."""

    figures: RunFigures
    past: RunPast
    spec: RunSpec
    fingerprint: Mapping[str, object]
    server: Mapping[str, object]
    gen_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing of both, in words. `difference` is "" where there is none or it is not known."""

    name: str
    a: str
    b: str
    difference: str = ""


def settings(a: Side, b: Side) -> tuple[Line, ...]:
    """Return the settings of both, each with whether it differs."""
    values = _settings(a), _settings(b)
    names = [*values[0], *(name for name in values[1] if name not in values[0])]
    return tuple(_told(name, values[0].get(name), values[1].get(name)) for name in names)


def _settings(side: Side) -> dict[str, str]:
    spec = side.spec
    found: dict[str, object] = {
        name: value for name, value in side.fingerprint.items() if "@" not in name
    }
    found |= {f"server {name}": value for name, value in side.server.items()}
    found |= {
        f"{what} of {name}": value
        for name, each in spec.classes.items()
        for what, value in (
            ("concurrency", each.concurrency),
            ("max_new_tokens", each.max_new_tokens),
        )
    }
    found |= {
        "token budget": words.tokens(spec.token_budget_tokens)
        if spec.token_budget_tokens is not None
        else None,
        "order": str(spec.order),
        "max_attempts": spec.max_attempts,
        "request_timeout_s": spec.request_timeout_s,
        "servers": ", ".join(spec.server_urls),
        "gen_id": side.gen_id,
    }
    return {
        name: words.one_line(str(value))[:_MAX_CHARS]
        for name, value in found.items()
        if value is not None
    }


def _told(name: str, a: str | None, b: str | None) -> Line:
    difference = "" if a == b else "differs" if a is not None and b is not None else "one only"
    return Line(name=name, a=a or DASH, b=b or DASH, difference=difference)


def course(a: Side, b: Side) -> tuple[Line, ...]:
    """Return how far both came, how fast and what failed."""
    sides = (a, b)
    counts = [side.figures.counts for side in sides]
    return (
        Line(name="State", a=str(a.figures.state), b=str(b.figures.state)),
        Line(name="Progress", a=f"{a.figures.percent} %", b=f"{b.figures.percent} %"),
        _whole("Answers kept", [each.kept for each in counts]),
        _tokens("Output tokens used", [side.figures.tokens.used for side in sides]),
        _tokens("Tokens wasted", [side.figures.tokens.wasted for side in sides]),
        _rates("Speed, mean at work", [side.past.mean_tokens_per_s for side in sides]),
        _rates("Speed, best 5 min", [side.past.best_tokens_per_s for side in sides]),
        _spans("Time at work", [side.past.active_s for side in sides]),
        _spans("Time paused", [side.past.paused_s for side in sides]),
        Line(name="Took, or ends in", a=_end(a.figures), b=_end(b.figures)),
        _whole("Failed samples", [each.failed for each in counts]),
        _shares("Truncated answers", [_cut(each) for each in counts]),
        _means("Mean output, tokens", [_mean(side.figures.counts, side.figures.tokens)
                                       for side in sides]),
    )  # fmt: skip


def _end(run: RunFigures) -> str:
    if run.state is RunState.FINISHED and run.created_at is not None:
        return f"took {words.span((run.state_since - run.created_at).total_seconds())}"
    if run.state is not RunState.RUNNING:
        return DASH
    return f"ends in {left(run.time_left)}" if isinstance(run.time_left, Estimate) else DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A partition of that name in both of the runs."""

    name: str
    lines: tuple[Line, ...]


def partitions(a: Side, b: Side) -> tuple[Pair, ...]:
    """Return the partitions that both have, in the order of the first."""
    others = {each.name: each for each in b.figures.partitions}
    return tuple(
        _pair(each, others[each.name], a, b) for each in a.figures.partitions if each.name in others
    )


def only_in(a: Side, b: Side) -> tuple[str, ...]:
    """Return the names of the partitions that `a` has and `b` does not."""
    names = {each.name for each in b.figures.partitions}
    return tuple(each.name for each in a.figures.partitions if each.name not in names)


def _pair(a: PartitionFigures, b: PartitionFigures, of_a: Side, of_b: Side) -> Pair:
    name = a.name
    counts = (a.counts, b.counts)
    lines = (
        _told("Prompts", _prompts(of_a, name), _prompts(of_b, name)),
        _told("Longest answer", *(_longest(side, name) for side in (of_a, of_b))),
        _whole("Answers kept", [each.kept for each in counts]),
        _whole("Failed", [each.failed for each in counts]),
        _shares("Truncated", [_cut(each) for each in counts]),
        _means("Mean output, tokens", [_mean(each.counts, each.tokens) for each in (a, b)]),
    )
    return Pair(name=name, lines=lines)


def _prompts(side: Side, name: str) -> str | None:
    found = side.fingerprint.get(_PROMPTS + name)
    digest = found[-1] if isinstance(found, list) and found else found
    return None if digest is None else str(digest)[:_SHOWN_DIGEST]


def _longest(side: Side, name: str) -> str | None:
    found = side.fingerprint.get(_LONGEST + name)
    return f"{found:,}" if isinstance(found, int) else None


def _cut(counts: Counts) -> float | None:
    return counts.truncated / counts.kept if counts.kept else None


def _mean(counts: Counts, tokens: Tokens) -> float | None:
    return tokens.kept / counts.kept if counts.kept else None


Values = Sequence[float | None]


def _whole(name: str, values: Values) -> Line:
    return _line(name, values, [DASH if n is None else f"{n:,.0f}" for n in values])


def _tokens(name: str, values: Values) -> Line:
    return _line(name, values, [DASH if n is None else words.tokens(n) for n in values])


def _rates(name: str, values: Values) -> Line:
    return _line(name, values, [DASH if n is None else f"{rate(n)} tok/s" for n in values])


def _spans(name: str, values: Values) -> Line:
    return _line(name, values, [DASH if n is None else words.span(n) for n in values])


def _means(name: str, values: Values) -> Line:
    return _line(name, values, [DASH if n is None else f"{n:,.0f}" for n in values])


def _shares(name: str, values: Values) -> Line:
    """Return two shares; their difference is in points, for a per cent of per cents misleads."""
    a, b = values
    told = ""
    if a is not None and b is not None and abs(b - a) >= SAME_RATIO:
        told = f"{100 * (b - a):+.0f} points"
    return Line(name=name, a=percent(a), b=percent(b), difference=told)


def _line(name: str, values: Values, shown: Sequence[str]) -> Line:
    a, b = values
    difference = f"+{shown[1]}" if a == 0 and b else by_how_much(a, b)
    return Line(name=name, a=shown[0], b=shown[1], difference=difference)


def by_how_much(a: float | None, b: float | None) -> str:
    """Return how much more or less the second is, "" where that says nothing.

    >>> by_how_much(200, 250), by_how_much(200, 100), by_how_much(200, 200.5), by_how_much(0, 5)
    ('+25 %', '−50 %', '', '')
    >>> by_how_much(10, 35), by_how_much(None, 3)
    ('× 3.5', '')
    >>> by_how_much(4_420_000, 13_700), by_how_much(10**9, 1), by_how_much(9, 0)
    ('−99.7 %', '−99.9 %', '−100 %')
    """
    if not a or b is None or abs(b - a) < SAME_RATIO * abs(a):
        return ""
    ratio = b / a
    if ratio >= 2:  # noqa: PLR2004 - from twice on, times say it better than per cent
        return f"× {ratio:.1f}"
    more = 100 * (ratio - 1)
    # what is left of it is not nothing, and is not to read so
    said = f"{max(more, -99.9):+.1f}" if b and more < -_NEARLY_ALL else f"{more:+.0f}"
    return f"{said} %".replace("-", "−")


def runs_told(a: Side, b: Side) -> Iterator[tuple[int, str]]:
    """Give number and name of both."""
    for side in (a, b):
        yield side.figures.run_id, side.figures.name
