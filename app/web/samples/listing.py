"""The list of samples as a sheet: the filter, a table in input order, the way on. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core import format as words
from app.core.states import KEPT, SampleState
from app.core.types import PartitionId
from app.core.visible import visible_line
from app.figures import RunFigures
from app.ledger.browsing import WINDOW, SampleEntry
from app.web import head
from app.web.draft import Draft
from app.web.samples.asked import Asked
from app.web.samples.reading import N_SHOWN, Found
from app.web.samples.saying import STATE_LOOKS, finish_word
from app.web.sheet import Block, Sheet
from app.web.wording import DASH

_LONGEST_REASON = 160
_LONGEST_KEY = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sample in the list, in words. `why_*` are the reasons for dashes."""

    address: str
    key: str
    about: str
    partition: str
    look: str
    state: str
    prompt: str
    output: str
    why_output: str
    finish: str
    attempts: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The whole page. `first` and `next` are addresses, "" where there is none."""

    address: str
    partitions: tuple[str, ...]
    states: tuple[str, ...]
    asked: Asked
    lines: tuple[Line, ...]
    sentence: str
    nothing: str
    first: str
    next: str
    next_word: str


def samples_page(run: RunFigures, asked: Asked, found: Found) -> Sheet:
    """Return the page of a part of a run's samples."""
    draft = Draft(run.at)
    names = {each.id: each.name for each in run.partitions}
    address = f"/runs/{run.run_id}/samples"
    about = Listing(
        address=address,
        partitions=tuple(names.values()),
        states=tuple(map(str, SampleState)),
        asked=asked,
        lines=lines_of(found.samples, names, address),
        sentence=_sentence(run, found),
        nothing="" if found.samples or found.looked_in else _nothing(run, asked),
        first="" if asked.is_first else f"{address}{asked.first.query()}",
        next=f"{address}{found.next.query()}" if found.next else "",
        next_word="Go on" if found.looked_in else f"Next {N_SHOWN}",
    )
    root = Block(
        id="page",
        template="samples/page.html",
        children=(
            head.signals(draft, run, "Samples", is_live=False),
            Block(id="samples", template="samples/list.html", about=about),
        ),
    )
    return draft.sheet(root, f"Samples · {words.one_line(run.name)}")


def lines_of(
    samples: Sequence[SampleEntry], names: Mapping[PartitionId, str], address: str
) -> tuple[Line, ...]:
    """Return the lines of a table of samples; `address` is where they stand under."""
    return tuple(_line(each, names.get(each.partition_id, ""), address) for each in samples)


def _line(entry: SampleEntry, partition: str, address: str) -> Line:
    has_answer = entry.state in KEPT or entry.output_tokens > 0
    key = visible_line(entry.key)
    copy = f", copy {entry.replica + 1}" if entry.replica else ""
    reason = visible_line(entry.reason or ", ".join(entry.flags))
    return Line(
        address=f"{address}/{entry.id}",
        key=key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…",
        about=f"record {entry.index:,}{copy}",
        partition=partition,
        look=STATE_LOOKS[entry.state],
        state=str(entry.state),
        prompt=words.whole(entry.prompt_tokens) if entry.prompt_tokens is not None else DASH,
        output=words.whole(entry.output_tokens) if has_answer else DASH,
        why_output="" if has_answer else "no answer yet",
        finish=finish_word(entry.finish_reason) or DASH,
        attempts=words.whole(entry.attempt),
        reason=reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…",
    )


def _sentence(run: RunFigures, found: Found) -> str:
    """Say what stands below, and where looking ended."""
    if found.has_more_hits:
        return f"The first {len(found.samples):,} that match; write more of the id to see others."
    if found.looked_in:
        chosen = next(each for each in run.partitions if each.name == found.looked_in)
        matched = len(found.samples)
        n = words.plural(matched, "match", "matches") if matched else "none matches"
        total = words.whole(chosen.counts.total)
        return f"Looked through the next {WINDOW:,} of {total} samples of {chosen.name}: {n}."
    return ""


def _nothing(run: RunFigures, asked: Asked) -> str:
    if asked.is_filtered:
        pairs = (asked.q, asked.partition, asked.state)
        told = " and ".join(f"“{visible_line(each)}”" for each in pairs if each)
        where = "" if asked.is_first else " behind this"
        return f"No sample{where} matches {told}."
    scanning = any(each.intake == "scanning" for each in run.partitions)
    return "The prompts are being read; no sample yet." if scanning else "There is no sample."
