"""The rows of partitions: order, pill, bar, figures, and which controls each has now.

Owns what a row shows; how it looks is `overview/row.html`'s. Pure. Invariant: a control is offered
only where the table of moves allows it.
"""

from dataclasses import dataclass
from urllib.parse import quote

from app.clock import iso
from app.core import format as words
from app.core.estimate import wanted_samples
from app.core.states import PARTITION_MOVES, RunState
from app.figures import PartitionFigures, RunFigures
from app.web.bars import bar, is_over, lay, progress_words
from app.web.draft import Draft
from app.web.filtering import EVERYTHING, Listing, by_name, order_of
from app.web.lines import spark_path
from app.web.row_words import asked, in_flight, left_cells, remarks, silent_since
from app.web.sheet import Block
from app.web.standing import Pill, standing
from app.web.wording import (
    exact_rate,
    moment,
    rate,
    typed_moment,
    typed_tokens,
)

__all__ = ["Row", "about_row", "control_cells", "left_cells", "rows"]
_ENDED = (RunState.FINISHED, RunState.STOPPING, RunState.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The structure of a row. `key` begins the ids of its cells; `address` those of its forms.

    `can_raise`: a budget or a goal still means something; these and the deadline as they would be
    typed, "" if none; `deadline_seen` exactly. `page` and `failures` are addresses.
    """

    key: str
    address: str
    name: str
    about: str
    kind: str
    can_pause: bool
    can_drain: bool
    can_resume: bool
    can_limit: bool
    can_raise: bool
    can_extend: bool
    budget: str
    goal: str
    longer_tokens: int
    is_own: bool
    has_tick: bool
    is_tick_over: bool
    has_failed: bool
    is_over: bool
    page: str = ""
    failures: str = ""
    deadline: str = ""
    deadline_seen: str = ""
    can_restart: bool = False
    has_end: bool = False

    @property
    def has_more(self) -> bool:
        return self.can_limit or self.can_raise or self.can_extend


def rows(draft: Draft, run: RunFigures, listing: Listing = EVERYTHING) -> Block:
    """Return the table's body: every row, in the order of the view; some of them hidden by it."""
    view = listing.view
    order = order_of(run, view.sort) if listing.order is None else listing.order
    rank = {partition_id: place for place, partition_id in enumerate(order)}
    placed = sorted(
        run.partitions, key=lambda each: (rank.get(each.id, len(rank)), by_name(each.name))
    )
    pills = [(standing(run, each), each) for each in placed]
    shown = {each.id for pill, each in pills if view.shows(each.name, pill.kind)}
    for each in run.partitions:
        draft.attr(f"p{each.id}", **({} if each.id in shown else {"hidden": ""}))
    draft.attr("no-rows", **({"hidden": ""} if shown or not placed else {}))
    draft.text("asked", asked(run))
    children = tuple(_row(draft, run, each, pill) for pill, each in pills)
    return Block(id="rows", template="overview/rows.html", children=children)


def _row(draft: Draft, run: RunFigures, partition: PartitionFigures, pill: Pill) -> Block:
    key = f"p{partition.id}"
    _figures(draft, run, partition, pill, key)
    draft.spoken(f"{key} {pill.plain_word}", f"{partition.name}: {pill.plain_word.lower()}.")
    return Block(id=key, template="overview/row.html", about=about_row(run, partition, pill, key))


def about_row(run: RunFigures, partition: PartitionFigures, pill: Pill, key: str) -> Row:
    """Return the structure of a row, or of the same controls on the partition's own page."""
    is_open = run.state not in _ENDED and not partition.is_over
    is_moving = is_open and run.state is RunState.RUNNING  # a run at rest is resumed as a whole
    may = {event for state, event in PARTITION_MOVES if state is partition.state}
    notes = [partition.class_name]
    if partition.max_new_tokens:
        notes.append(f"{partition.max_new_tokens:,} max")
    if partition.deadline_at is not None and partition.deadline_at > run.at:
        notes.append(f"until {moment(partition.deadline_at, run.at)}")
    return Row(
        key=key,
        address=f"/runs/{run.run_id}/p/{partition.id}",
        name=partition.name,
        about=", ".join(notes),
        kind=pill.kind,
        can_pause=is_moving and "pause" in may,
        can_drain=is_moving and "drain" in may,
        can_resume=is_moving and "resume" in may,
        can_limit=is_open,
        can_raise=_can_raise(run, partition),
        can_extend=_can_extend(run, partition),
        budget=typed_tokens(partition.token_budget_tokens),
        goal="" if partition.goal_samples is None else str(partition.goal_samples),
        longer_tokens=2 * partition.max_new_tokens,
        is_own=partition.own_concurrency is not None,
        has_tick=partition.token_budget_tokens is not None,
        is_tick_over=is_over(partition.ends),
        has_failed=partition.counts.failed > 0,
        is_over=partition.is_over,
        page=f"/runs/{run.run_id}/p/{quote(partition.name, safe='')}",
        failures=f"/runs/{run.run_id}/failures?partition={quote(partition.name, safe='')}",
        deadline=typed_moment(partition.deadline_at, run.at),
        deadline_seen="none" if partition.deadline_at is None else iso(partition.deadline_at),
        can_restart=is_moving and pill.plain_word == "Stalled" and "drain" in may,
        has_end=pill.kind == "done" and partition.sealed_at is not None,
    )


def _can_raise(run: RunFigures, partition: PartitionFigures) -> bool:
    """Whether samples are left for a budget or a goal; also where these have ended it."""
    is_left = not partition.is_over or partition.counts.pending > 0
    return run.state is not RunState.STOPPING and is_left


def _can_extend(run: RunFigures, partition: PartitionFigures) -> bool:
    """Whether there are answers that a higher limit lets go on; also in a run that has ended."""
    is_still = run.state is not RunState.STOPPING and partition.intake == "tokenized"
    return is_still and partition.counts.truncated > 0


def _figures(
    draft: Draft, run: RunFigures, partition: PartitionFigures, pill: Pill, key: str
) -> None:
    draft.text(f"{key}-s", pill.word)
    _bar(draft, partition, key)
    draft.text(f"{key}-v", rate(partition.speed_tokens_per_s))
    draft.attr(f"{key}-v", title=exact_rate(partition.speed_tokens_per_s))
    draft.path(f"{key}-l", spark_path(partition.spark_tokens_per_s))
    main, below = left_cells(run, partition, pill)
    draft.text(f"{key}-t", main)
    draft.attr(f"{key}-t", title=silent_since(run, partition, main))
    if pill.kind == "done" and partition.sealed_at is not None:
        draft.clock(f"{key}-e", partition.sealed_at)
    draft.text(f"{key}-r", below)
    draft.text(f"{key}-f", f"{partition.counts.failed:,}")
    draft.text(f"{key}-m", "; ".join(remarks(partition)))
    control_cells(draft, run, partition, key)


def control_cells(draft: Draft, run: RunFigures, partition: PartitionFigures, key: str) -> None:
    """Write the figures that stand in a partition's controls."""
    said = in_flight(run, partition)
    draft.text(f"{key}-n", said)
    is_on_its_way = " of " in said or " drains " in said
    draft.attr(f"{key}-n", **{"class": "num moving" if is_on_its_way else "num"})
    draft.attr(f"{key}-c", value=_concurrency(partition))
    own = partition.own_concurrency
    draft.attr(f"{key}-x", value="share" if own is None else str(own))
    if _can_extend(run, partition):
        draft.text(f"{key}-u", f"{partition.counts.truncated:,} truncated")


def _bar(draft: Draft, partition: PartitionFigures, key: str) -> None:
    counts, used = partition.counts, partition.tokens.used
    lengths = bar(
        counts,
        partition.goal_samples,
        used,
        partition.token_budget_tokens,
        partition.percent,
    )
    said = progress_words(
        partition.percent,
        counts,
        partition.goal_samples,
        used,
        partition.token_budget_tokens,
        partition.ends,
    )
    draft.text(f"{key}-w", said)
    draft.attr(
        f"{key}-b",
        aria_valuenow=str(partition.percent),
        # not what is in flight: it stands beside the bar, and a frame has little room
        aria_valuetext=f"{partition.percent} % of {_wanted(partition)}",
    )
    lay(draft, key, lengths)


def _wanted(partition: PartitionFigures) -> str:
    return words.plural(wanted_samples(partition.counts, partition.goal_samples), "sample")


def _concurrency(partition: PartitionFigures) -> str:
    wanted = partition.own_concurrency or partition.concurrency_requests
    return "" if wanted is None else str(wanted)
