"""The page of failures: what to show, what may be tried again, and a line for each group.

Owns the words beside the buttons: how many a press moves and how many of them in vain. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from app.core import format as words
from app.core.reasons import FAILURES, Choice
from app.core.states import RETRYABLE, SampleState
from app.core.visible import visible_line
from app.figures import RunFigures
from app.ledger.failures import Survey
from app.web import head
from app.web.draft import Draft
from app.web.failures.groups import (
    Count,
    Group,
    doomed,
    groups_of,
    how_they_ended,
    retryable,
    warning,
)
from app.web.sheet import Block, Sheet

MOST_SHOWN = 100
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The filter and what holds for all that is shown. `fields` are the choice, for the forms."""

    address: str
    partitions: tuple[str, ...]
    states: tuple[str, ...]
    partition: str
    state: str
    words: str
    is_filtered: bool
    has_retry: bool
    has_doomed: bool
    has_others: bool
    has_rest: bool
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One group. `partitions` are its names with the addresses of their samples."""

    id: str
    group: str
    address: str
    reason: str
    state: str
    has_numbers: bool
    lasting: str
    can_retry: bool
    example: str
    partitions: tuple[tuple[str, str], ...]
    more_partitions: int
    has_time: bool
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    nothing: str
    address: str
    is_filtered: bool


def failures_page(run: RunFigures, found: Survey, choice: Choice) -> Sheet:
    """Return the page of the failures that are meant."""
    draft = Draft(run.at)
    names = {each.id: each.name for each in run.partitions}
    groups = groups_of(found, names, choice)
    children = (
        head.signals(draft, run, "Failures"),
        head.banner(draft, run),
        _summary(draft, run, found, choice, groups),
        _lines(draft, run, choice, groups),
    )
    root = Block(id="page", template="failures/page.html", children=children)
    return draft.sheet(root, f"Failures · {words.one_line(run.name)}")


def _summary(
    draft: Draft, run: RunFigures, found: Survey, choice: Choice, groups: Sequence[Group]
) -> Block:
    again = retryable(groups)
    in_vain = sum((count for _, count in doomed(groups)), Count())
    others = Count(n=again.n - in_vain.n, is_least=again.is_least or in_vain.is_least)
    n_groups = words.plural(len(groups), "reason")
    draft.text("fail-n", f"{how_they_ended(groups)}: {n_groups}" if groups else "None")
    draft.text("fail-all", str(again))
    draft.text("fail-others", str(others))
    draft.text("fail-vain", warning(groups))
    draft.text("fail-rest", _rest(run, found, groups))
    about = Summary(
        address=f"/runs/{run.run_id}/failures",
        partitions=tuple(each.name for each in run.partitions),
        states=tuple(map(str, FAILURES)),
        partition=choice.partition,
        state=str(choice.state or ""),
        words=choice.words,
        is_filtered=choice != Choice(),
        has_retry=again.n > 0,
        has_doomed=in_vain.n > 0,
        has_others=others.n > 0,
        has_rest=bool(found.unfinished) or len(groups) > MOST_SHOWN,
        fields=_fields(choice),
    )
    return Block(id="fail-head", template="failures/summary.html", about=about)


def _rest(run: RunFigures, found: Survey, groups: Sequence[Group]) -> str:
    """Say what is not shown."""
    told = []
    if len(groups) > MOST_SHOWN:
        told.append(f"The {MOST_SHOWN} largest groups are shown.")
    if found.unfinished:
        names = {each.id: each.name for each in run.partitions}
        where = ", ".join(f"{names.get(each, each)} ({state})" for each, state in found.unfinished)
        told.append(
            f"More different reasons than were looked at: {words.one_line(where)}. Choose a"
            " partition and a state to see more of them; a retry takes all that match."
        )
    return " ".join(told)


def _fields(choice: Choice) -> tuple[tuple[str, str], ...]:
    pairs = (
        ("partition", choice.partition),
        ("state", str(choice.state or "")),
        ("reason", choice.words),
    )
    return tuple((name, value) for name, value in pairs if value)


def _lines(draft: Draft, run: RunFigures, choice: Choice, groups: Sequence[Group]) -> Block:
    base = f"/runs/{run.run_id}"
    nothing = ""
    if not groups:
        is_filtered = choice != Choice()
        nothing = f"No failure matches {_told(choice)}." if is_filtered else "Nothing has failed."
    about = Lines(nothing=nothing, address=f"{base}/failures", is_filtered=choice != Choice())
    children = tuple(_line(draft, base, choice, group) for group in groups[:MOST_SHOWN])
    return Block(id="fail-groups", template="failures/groups.html", about=about, children=children)


def _told(choice: Choice) -> str:
    pairs = (choice.words, choice.partition, str(choice.state or ""))
    return " and ".join(f"“{visible_line(each)}”" for each in pairs if each) or "that"


def _line(draft: Draft, base: str, choice: Choice, group: Group) -> Block:
    k = f"g{group.key}"
    draft.text(f"{k}-n", str(group.count))
    draft.attr(f"{k}-n", title=_how_counted(group.count))
    named = group.by_partition[:_MOST_NAMED]
    for place, (_, count) in enumerate(named):
        draft.text(f"{k}-p{place}", str(count))
    if group.can_retry:
        draft.text(f"{k}-b", str(group.count))
    draft.clock(f"{k}-a", group.first_at, otherwise="–")
    draft.clock(f"{k}-z", group.last_at, otherwise="–")
    state = SampleState(group.state)
    about = Line(
        id=k,
        group=group.key,
        address=f"{base}/failures",
        reason=group.reason,
        state=str(state),
        has_numbers=group.n_forms > 1,
        lasting=group.lasting,
        can_retry=state in RETRYABLE,
        example=f"{base}/samples/{group.example}",
        partitions=tuple(
            (name, f"{base}/samples?partition={quote(name)}&state={state}") for name, _ in named
        ),
        more_partitions=len(group.by_partition) - len(named),
        has_time=group.first_at is not None,
        fields=(*_fields(choice), ("group", group.key)),
    )
    return Block(id=k, template="failures/group.html", about=about)


def _how_counted(count: Count) -> str:
    return "There are more; counting ended here." if count.is_least else ""
