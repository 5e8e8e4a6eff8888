"""Where budgets and deadlines will end the work, from what the ledger says and what is known.

Owns which budget and which deadline hold for whom, and cuts the times left at the deadlines: they
say when the work ends, whatever ends it. The arithmetic is `core/landing.py`'s. A deadline of the
run holds for its partitions too. One that has passed ends nothing any more.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from app.core.estimate import Estimate, Unknown
from app.core.landing import Course, Landing, at_rest, course, landing, together
from app.core.views import RunView
from app.figures.ends import Ends
from app.figures.forecasting import Outlook


def partition_landing(
    run: RunView, view: Outlook, time_left: Estimate | Unknown, now: datetime
) -> Landing | None:
    """Return where one partition ends before its samples do; None if it does not."""
    way = _course(view)
    if way is None or not view.goes_on:
        return None
    deadlines = (view.partition.deadline_at, run.deadline_at)
    return landing(way, _seconds(time_left), _next_s(deadlines, now))


def run_landing(
    run: RunView, views: Sequence[Outlook], time_left: Estimate | Unknown, now: datetime
) -> Landing | None:
    """Return where the run ends before its samples do; None if that is not known of all of it."""
    ways = [_course(view) for view in views]
    known = [way for way in ways if way is not None]
    if len(known) < len(ways) or not any(view.goes_on for view in views):
        return None
    used = sum(view.partition.tokens.used for view in views)
    room = None if run.token_budget is None else run.token_budget - used
    return landing(together(known, room), _seconds(time_left), _next_s((run.deadline_at,), now))


def landings(
    run: RunView,
    views: Sequence[Outlook],
    time_left: Mapping[str, Estimate | Unknown],
    now: datetime,
) -> dict[str, Landing | None]:
    """Return where each partition ends, by name."""
    return {
        view.partition.name: partition_landing(run, view, time_left[view.partition.name], now)
        for view in views
    }


def cut_at_deadlines(run: RunView, views: Sequence[Outlook], ends: Ends, now: datetime) -> Ends:
    """Return the ends as they are where a deadline comes before the work is done.

    The run ends with the last of its partitions. Nothing "ends last" where its own deadline does.
    """
    of_run_s = _next_s((run.deadline_at,), now)
    own_s = {v.partition.name: _next_s((v.partition.deadline_at,), now) for v in views}
    by_own = {name: _cut(left, own_s[name]) for name, left in ends.partitions.items()}
    going = [view.partition.name for view in views if view.goes_on]
    left, decided_by = ends.run, ends.decided_by
    lasts = [_latest(by_own[name], own_s[name]) for name in going]
    known = [last for last in lasts if last is not None]
    if isinstance(left, Estimate) and len(known) == len(lasts) and by_own != ends.partitions:
        left = _together(left, [ends.partitions[name] for name in going], known)
        if decided_by is not None and by_own[decided_by] != ends.partitions[decided_by]:
            decided_by = max(zip(known, going, strict=True), key=lambda each: each[0].mid_s)[1]
    if of_run_s is not None and isinstance(left, Estimate) and of_run_s <= left.mid_s:
        decided_by = None
    return Ends(
        partitions={name: _cut(each, of_run_s) for name, each in by_own.items()},
        run=_cut(left, of_run_s),
        decided_by=decided_by,
    )


def _cut(left: Estimate | Unknown, seconds: float | None) -> Estimate | Unknown:
    if isinstance(left, Unknown) or seconds is None:
        return left
    return left.cut_at(seconds)


def _latest(left: Estimate | Unknown, deadline_s: float | None) -> Estimate | None:
    """Return when a partition ends at the latest; None if it may go on for any time."""
    if isinstance(left, Estimate):
        return left
    if deadline_s is None:
        return None
    return Estimate(low_s=deadline_s, mid_s=deadline_s, high_s=deadline_s)


def _together(
    run: Estimate, uncut: Sequence[Estimate | Unknown], cut: Sequence[Estimate]
) -> Estimate:
    """Return the run's time left, as far down as deadlines take the last of its partitions.

    The last of several ends later than any one is likely to: what no deadline moves stays.
    """
    before = [each for each in uncut if isinstance(each, Estimate)]
    is_all = len(before) == len(cut)
    low, mid, high = (
        left if is_all and last == was else min(left, last)
        for left, last, was in (
            (run.low_s, max(e.low_s for e in cut), max((e.low_s for e in before), default=0.0)),
            (run.mid_s, max(e.mid_s for e in cut), max((e.mid_s for e in before), default=0.0)),
            (run.high_s, max(e.high_s for e in cut), max((e.high_s for e in before), default=0.0)),
        )
    )
    return Estimate(low_s=min(low, mid, high), mid_s=min(mid, high), high_s=high)


def _course(view: Outlook) -> Course | None:
    partition = view.partition
    if partition.is_over:
        return at_rest(partition.counts, partition.goal_samples)
    if view.known is None or partition.intake == "scanning":
        return None
    room = None
    if partition.token_budget is not None:
        room = partition.token_budget - partition.tokens.used
    return course(
        partition.counts,
        partition.goal_samples,
        view.known.lengths,
        view.known.started_tokens,
        room,
    )


def _seconds(time_left: Estimate | Unknown) -> float | None:
    return time_left.mid_s if isinstance(time_left, Estimate) else None


def _next_s(deadlines: Sequence[datetime | None], now: datetime) -> float | None:
    ahead = [(each - now).total_seconds() for each in deadlines if each is not None and each > now]
    return min(ahead, default=None)
