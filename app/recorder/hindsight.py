"""A run looked back on: what its stored rows showed, against how it went on.

Owns what is read for it, and which moments count: rows and entries in batches, so a run of weeks
takes little memory. What was shown is judged by the end of its own stretch: from an opening of the
run, or of the partition, to the end that came before the next. A last stretch that goes on, or was
stopped, is not judged; times and tokens are of the whole run. The ledger keeps a partition's last
end alone: an earlier one is the first row that showed nothing left. Rows of earlier versions count
as far as they can be read. What was adopted of an earlier script is in no mean: nobody received it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from app.core.eta_errors import Idle, Shown, Span, Stretch, Verdict
from app.core.states import RunState
from app.core.types import Counts, RunId, Tokens
from app.core.views import PartitionView, RunView
from app.ledger import runs, snapshots
from app.ledger.db import Ledger
from app.ledger.measures import adopted_tokens
from app.recorder.course import Course, Held
from app.recorder.rows import Past, read_past

_BATCH = 500
_FOR_EVER_MS = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPast:
    """A partition's part. `verdict` is None while no stretch has ended or no end was shown."""

    name: str
    ended_at: datetime | None
    active_s: float
    paused_s: float
    counts: Counts
    tokens: Tokens
    mean_tokens_per_s: float | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPast:
    """A run as it went. Wall time is active + paused + unserved + finished; means are over active.

    `finished_s` is the time from ends to the openings after them, `opened_at` the last opening.
    """

    id: RunId
    name: str
    state: RunState
    reason: str
    begin: datetime
    opened_at: datetime
    ended_at: datetime | None
    seen_until: datetime
    active_s: float
    paused_s: float
    unserved_s: float
    finished_s: float
    mean_tokens_per_s: float | None
    best_tokens_per_s: float | None
    n_rows: int
    verdict: Verdict | None
    partitions: tuple[PartitionPast, ...]
    conditions: tuple[Held, ...]


def look_back(ledger: Ledger, run: RunView) -> RunPast:
    """Return how a run went until its last row, or until its end."""
    partitions = runs.partitions_of(ledger, run.id)
    names = {each.id: each.name for each in partitions}
    course = Course(opened_s=run.created_at.timestamp())
    course.follow(ledger, run.id, names)
    begin_s = run.created_at.timestamp()
    shown = {each.id: Shown() for each in partitions}
    whole, best, down, n_rows = Shown(), None, [], 0
    last: Past | None = None
    for past in _rows(ledger, run.id):
        n_rows += 1
        if last is not None and last.session != past.session:
            down.append((_seen_until_s(last.at_s, past.at_s, course), past.at_s))
        whole.add(past.at_s, past.received_tokens, past.left_s)
        for partition_id, (received, left) in past.by_partition.items():
            if partition_id in shown:
                shown[partition_id].add(past.at_s, received, left)
        best = past.best_tokens_per_s if past.best_tokens_per_s is not None else best
        last = past
    ended_at = run.state_since if run.state is RunState.FINISHED else None
    # a service that died saw nothing after its last row
    until_s = max(course.opened_s, last.at_s if last else begin_s)
    until_s = ended_at.timestamp() if ended_at else until_s
    course.close(until_s, names)
    finished = Idle(course.between)
    paused, idle = Idle(course.paused), Idle([*course.paused, *course.between, *down])
    adopted = {each.id: adopted_tokens(ledger, each.id) for each in partitions}
    received = sum(each.tokens.received for each in partitions)
    paused_s, finished_s = (each.within(begin_s, until_s) for each in (paused, finished))
    active_s = idle.active_s(begin_s, until_s)
    stretches = [_stretch(whole, span) for span in course.ended]
    if ended_at is not None:
        stretches.append(Stretch(begin_s=course.opened_s, end_s=until_s, end_tokens=received))
    return RunPast(
        id=run.id,
        name=run.name,
        state=run.state,
        reason=run.reason,
        begin=run.created_at,
        opened_at=_moment(course.opened_s, run),
        ended_at=ended_at,
        seen_until=_moment(until_s, run),
        active_s=active_s,
        paused_s=paused_s,
        unserved_s=max(0.0, until_s - begin_s - active_s - paused_s - finished_s),
        finished_s=finished_s,
        mean_tokens_per_s=_mean(whole, received - sum(adopted.values()), active_s),
        best_tokens_per_s=best,
        n_rows=n_rows,
        verdict=_verdict(whole, stretches, idle),
        partitions=tuple(
            _partition_past(
                each, shown[each.id], (begin_s, until_s), course, down, adopted[each.id]
            )
            for each in partitions
        ),
        conditions=tuple(course.held),
    )


def _seen_until_s(last_s: float, next_s: float, course: Course) -> float:
    """Return until when a service saw the run: its last row, or an end that it wrote after that."""
    return max([last_s, *(end for _, end in course.ended if last_s < end < next_s)])


def _stretch(shown: Shown, span: Span) -> Stretch:
    return Stretch(begin_s=span[0], end_s=span[1], end_tokens=shown.tokens_at(span[1]))


def _partition_past(
    partition: PartitionView,
    shown: Shown,
    span: Span,
    course: Course,
    down: list[Span],
    n_adopted: int,
) -> PartitionPast:
    begin_s, received = span[0], partition.tokens.received
    ended_at = partition.sealed_at if partition.is_over else None
    until_s = ended_at.timestamp() if ended_at is not None else span[1]
    ended, opened_s = _ended(partition, shown, begin_s, until_s, course)
    stretches = [_stretch(shown, each) for each in ended]
    if ended_at is not None:
        stretches.append(Stretch(begin_s=opened_s, end_s=until_s, end_tokens=received))
    openings = [*(begin for begin, _ in ended[1:]), opened_s]
    over = [(end, opened) for (_, end), opened in zip(ended, openings, strict=False)]
    over += course.between
    resting = [*course.paused, *course.by_partition.get(partition.id, ())]
    idle = Idle([*resting, *over, *down])
    active_s = idle.active_s(begin_s, until_s)
    over_s = Idle(over).within(begin_s, until_s)
    return PartitionPast(
        name=partition.name,
        ended_at=ended_at,
        active_s=active_s,
        paused_s=Idle([*resting, *over]).within(begin_s, until_s) - over_s,
        counts=partition.counts,
        tokens=partition.tokens,
        mean_tokens_per_s=_mean(shown, received - n_adopted, active_s),
        verdict=_verdict(shown, stretches, idle),
    )


def _ended(
    partition: PartitionView, shown: Shown, begin_s: float, until_s: float, course: Course
) -> tuple[list[Span], float]:
    """Return a partition's stretches that were followed by another, and when the last one began.

    It may have been opened again with the run, and alone, while the run went on.
    """
    raised = {*course.raised.get(None, ()), *course.raised.get(partition.id, ())}
    runs_end = {opened: end for end, opened in course.between}
    ended: list[Span] = []
    for opened_s in sorted({*raised, *runs_end}):
        if not begin_s < opened_s <= until_s:
            continue
        end_s = shown.over_since_s(begin_s, opened_s) or runs_end.get(opened_s)
        # an order is noted a moment before the run opens: the end before both is one
        if end_s is not None and end_s > begin_s:
            ended.append((begin_s, end_s))
            begin_s = opened_s
    return ended, begin_s


def _verdict(shown: Shown, stretches: list[Stretch], idle: Idle) -> Verdict | None:
    verdict = shown.judge(stretches, idle)
    return verdict if verdict.n_shown else None


def _mean(shown: Shown, received_tokens: int, active_s: float) -> float | None:
    return received_tokens / active_s if active_s > 0 and len(shown) else None


def _rows(ledger: Ledger, run_id: RunId) -> Iterator[Past]:
    at_ms = 0
    while stored := snapshots.between(ledger, run_id, at_ms, _FOR_EVER_MS, _BATCH):
        yield from read_past(stored)
        at_ms = stored[-1].at_ms + 1


def _moment(at_s: float, run: RunView) -> datetime:
    return datetime.fromtimestamp(at_s, run.created_at.tzinfo)
