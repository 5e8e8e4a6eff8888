"""The quieter parts of a partition's page: times, failures, the last samples, settings.

Owns what stands in them. Pure. Invariant: text from elsewhere (reasons, ids, paths) is one line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import orjson

from app.clock import from_ms
from app.core import format as words
from app.core.reasons import form_of, group_of
from app.core.spread import Measure, Spread
from app.core.states import SampleState
from app.figures import PartitionFigures, RunFigures
from app.ledger.glimpses import MOST_LOOKED_AT, Reason
from app.web.draft import Draft
from app.web.lines import chart_path, levels_path
from app.web.partition.reads import Read
from app.web.samples.saying import finish_word
from app.web.sheet import Block
from app.web.wording import DASH, moment, rate, seconds

_HOUR_MS = 3_600_000
_LEAST_HOURS = 2
_FEWEST_OF_A_LINE = 3  # two hours are two levels: a line would say what was between
N_REASONS = 8
_MAX_CHARS = 160
_KINDS = ((Measure.FIRST_TOKEN, "First token"), (Measure.LATENCY, "Whole answer"))
_NONE_MEASURED = "no answer was timed from its first token to its last yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One measure of time: the key of its ids, its name, the edges of its small chart."""

    key: str
    label: str
    top: str
    begin: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """One line that leads somewhere."""

    address: str
    n: str
    what: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    address: str
    lines: tuple[Linked, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    address: str
    key: str
    state: str
    tokens: str
    finish: str
    attempts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    address: str
    samples: tuple[Sample, ...]


def times(draft: Draft, known: Read) -> Block:
    """Return first token and latency, overall and by hour, and the lengths of prompts."""
    shown = tuple(_timed(draft, known, kind, label) for kind, label in _KINDS)
    prompts = known.spread(Measure.PROMPT)
    median, p90 = prompts.percentile(0.5), prompts.percentile(0.9)
    draft.text(
        "tm-prompt",
        f"median {rate(median)} · p90 {rate(p90)} tokens" if prompts.n else DASH,
    )
    draft.attr("tm-prompt", title="" if prompts.n else "no answer has ended since they are counted")
    return Block(id="ptimes", template="partition/times.html", about=shown)


def _timed(draft: Draft, known: Read, kind: Measure, label: str) -> Timed:
    key = f"tm-{kind.value.replace('_', '-')}"
    spread = known.spread(kind)
    draft.text(key, _both(spread) if spread.n else DASH)
    draft.attr(key, title="" if spread.n else _NONE_MEASURED)
    hours = _filled(known.hours.get(kind, ()))
    middle = [_s(each, 0.5) for _, each in hours]
    high = [_s(each, 0.95) for _, each in hours]
    top = max((value for value in high if value is not None), default=0.0)
    is_drawn = len(hours) >= _LEAST_HOURS and top > 0
    if is_drawn:
        is_line = sum(value is not None for value in high) >= _FEWEST_OF_A_LINE
        path = chart_path if is_line else levels_path
        draft.path(f"{key}-m", path(middle, top))
        draft.path(f"{key}-h", path(high, top))
    return Timed(
        key=key,
        label=label,
        top=seconds(top) if is_drawn else "",
        begin=moment(from_ms(hours[0][0]), draft.now) if is_drawn else "",
        end=moment(from_ms(hours[-1][0]), draft.now) if is_drawn else "",
    )


def _both(spread: Spread) -> str:
    return f"{seconds(_s(spread, 0.5))} / {seconds(_s(spread, 0.95))}"


def _s(spread: Spread | None, share: float) -> float | None:
    value = None if spread is None else spread.percentile(share)
    return None if value is None else value / 1000


def _filled(hours: Sequence[tuple[int, Spread]]) -> list[tuple[int, Spread | None]]:
    """Return every hour from the first to the last; None where no answer ended."""
    if not hours:
        return []
    known: Mapping[int, Spread] = dict(hours)
    return [(at_ms, known.get(at_ms)) for at_ms in range(hours[0][0], hours[-1][0] + 1, _HOUR_MS)]


def failures(run: RunFigures, partition: PartitionFigures, known: Read) -> Block:
    """Return the commonest reasons of what is no good answer."""
    base = f"/runs/{run.run_id}/failures"
    groups: dict[tuple[str, str], list[Reason]] = {}
    for each in known.reasons:  # reasons that differ only in numbers are one, as on that page
        group = group_of(SampleState(each.state), each.reason)
        groups.setdefault((group, each.state), []).append(each)
    listed = sorted(groups.items(), key=lambda pair: -_n(pair[1]))
    lines = tuple(
        Linked(
            address=_with(base, partition=partition.name, group=group),
            n=f"{_n(members):,}",
            what=state,
            about=_cut(form_of(members[0].reason) if members[1:] else members[0].reason),
        )
        for (group, state), members in listed[:N_REASONS]
    )
    counts = partition.counts
    total = counts.failed + counts.rejected + counts.empty + counts.suspect
    note = ""
    if total > MOST_LOOKED_AT:
        note = f"counted among {MOST_LOOKED_AT:,} of {total:,}"
    elif len(listed) > N_REASONS:
        note = f"the {N_REASONS} commonest reasons"
    about = Failures(address=_with(base, partition=partition.name), lines=lines, note=note)
    return Block(id="pfails", template="partition/failures.html", about=about)


def _n(members: Sequence[Reason]) -> int:
    return sum(each.n for each in members)


def samples(run: RunFigures, partition: PartitionFigures, known: Read) -> Block:
    """Return the answers furthest on in the input."""
    base = f"/runs/{run.run_id}/samples"
    shown = tuple(
        Sample(
            address=f"{base}/{each.id}",
            key=_cut(each.key),
            state=str(each.state),
            tokens=f"{each.output_tokens:,}",
            finish=_cut(finish_word(each.finish_reason)),
            attempts=f"{each.attempt:,}",
        )
        for each in known.samples
    )
    about = Samples(address=_with(base, partition=partition.name), samples=shown)
    return Block(id="psamples", template="partition/samples.html", about=about)


def settings(run: RunFigures, partition: PartitionFigures, known: Read) -> Block:
    """Return what the answers are made with, and where they come from and go."""
    spec, view = known.spec, known.view
    sampling = ", ".join(f"{name} {_value(value)}" for name, value in spec.sampling.items())
    template = ", ".join(
        f"{name} {_value(value)}" for name, value in spec.chat_template_kwargs.items()
    )
    found = [
        ("Class", partition.class_name),
        ("Sampling", sampling or "as the server has it"),
        ("Chat template", template),
        ("max_new_tokens", f"{partition.max_new_tokens:,}"),
        ("Samples of each prompt", f"{spec.samples_per_prompt:,}"),
        ("Attempts at most", f"{spec.max_attempts:,}"),
        ("Prompts", view.prompts_path),
        ("Answers", f"{run.output_dir}/{partition.name}"),
    ]
    about = tuple((name, words.one_line(said)) for name, said in found if said)
    return Block(id="psettings", template="partition/settings.html", about=about)


def _with(base: str, **query: str) -> str:
    return f"{base}?{urlencode(query)}"


def _value(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _cut(said: str) -> str:
    flat = words.one_line(said)
    return flat if len(flat) <= _MAX_CHARS else f"{flat[: _MAX_CHARS - 1]}…"
