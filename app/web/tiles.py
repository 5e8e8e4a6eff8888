"""The four tiles of a run's page: speed now, done at, progress, and what needs a person.

Owns which figures stand in them. Pure. Invariant: each figure has what makes it mean something
beside it: a mean, a range, a total.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from app.core import format as words
from app.core.estimate import Estimate, wanted_samples
from app.core.landing import end_words
from app.core.states import RunState
from app.figures import PartitionFigures, RunFigures, concerns
from app.web.bars import bar, failed_words, is_over, lay
from app.web.draft import Draft
from app.web.head import is_loud
from app.web.sheet import Block
from app.web.wording import DASH, ends, exact_rate, is_wide, left, rate

_NEED_LINES = 3  # as many as the other tiles have: what comes and goes there moves no row


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    has_end: bool
    has_likely: bool
    has_tick: bool
    is_tick_over: bool
    need_ids: tuple[str, ...]


def tiles(draft: Draft, run: RunFigures) -> Block:
    """Return speed, end, progress and needs."""
    _speed(draft, run)
    has_likely = _end(draft, run)
    has_tick = _progress(draft, run)
    needs = _needs(run)
    draft.text("need-n", str(len(needs)) if needs else "Nothing")
    lines = _need_lines(needs)
    for name, line in lines.items():
        draft.text(name, line)
    about = Tiles(
        has_end=isinstance(run.time_left, Estimate) and run.state is RunState.RUNNING,
        has_likely=has_likely,
        has_tick=has_tick,
        is_tick_over=is_over(run.ends),
        need_ids=tuple(lines),
    )
    return Block(id="tiles", template="overview/tiles.html", about=about)


def _needs(run: RunFigures) -> list[str]:
    """Return what needs a person; what the banner says in full only by its kind."""
    loud = {words.one_line(one.sentence): str(one.kind) for one in run.conditions if is_loud(one)}
    return [f"{loud[one].capitalize()}, see above" if one in loud else one for one in concerns(run)]


def _need_lines(needs: Sequence[str]) -> dict[str, str]:
    """Return the lines of the tile by their ids; where they are too many the last one counts."""
    n_said = len(needs) if len(needs) <= _NEED_LINES else _NEED_LINES - 1
    lines = {f"need-{place}": need for place, need in enumerate(needs[:n_said])}
    if len(needs) > n_said:
        lines["need-more"] = f"and {len(needs) - n_said} more"
    return lines


def _speed(draft: Draft, run: RunFigures) -> None:
    draft.text("speed", rate(run.speed_tokens_per_s))
    draft.attr("speed", title=exact_rate(run.speed_tokens_per_s))
    parts = [f"{words.plural(run.n_in_flight, 'request')} in flight"]
    if run.last_token_at is not None and run.state is RunState.RUNNING:
        ago = words.age(run.last_token_at, run.at).replace(" ", "\N{NO-BREAK SPACE}")
        parts.append(f"last token {ago}")
    draft.text("speed-a", " · ".join(parts))
    draft.text("speed-b", " · ".join(_compared(run)))


def _compared(run: RunFigures) -> list[str]:
    """Return what makes a speed mean something: the mean, and the best there was."""
    said = []
    if run.mean_hour_tokens_per_s is not None:
        is_young = run.created_at is not None and (run.at - run.created_at) < timedelta(hours=1)
        said.append(f"{'mean' if is_young else '1 h mean'} {rate(run.mean_hour_tokens_per_s)}")
    if run.best_tokens_per_s is not None:
        said.append(f"best 5 min {rate(run.best_tokens_per_s)}")
    return said


def _end(draft: Draft, run: RunFigures) -> bool:
    estimate = run.time_left
    if run.state is RunState.FINISHED:
        draft.clock("end", run.state_since)
        draft.text("end-in", "finished")
        draft.text("end-why", "")
        return False
    if not isinstance(estimate, Estimate) or run.state is not RunState.RUNNING:
        why = estimate.why if not isinstance(estimate, Estimate) else str(run.state)
        draft.clock("end", None, otherwise=DASH)
        draft.text("end-in", "")
        draft.text("end-why", why)
        return False
    low, middle, high = ends(estimate, run.at)
    draft.clock("end", middle)
    draft.text("end-in", "" if estimate.high_s <= 0 else f"in {left(estimate)}")
    draft.text("end-why", f"{run.decided_by} ends last" if run.decided_by else "")
    if is_wide(estimate) or low == high:
        return False
    draft.clock("end-low", low)
    draft.clock("end-high", high)
    return True


def _progress(draft: Draft, run: RunFigures) -> bool:
    counts, used = run.counts, run.tokens.used
    goal, budget = _goal(run.partitions), _budget(run)
    lengths = bar(counts, goal, used, budget, run.percent)
    draft.text("pct", f"{run.percent} %")
    wanted = goal if goal is not None else wanted_samples(counts)
    kept = f"{counts.kept:,} of {max(wanted, counts.kept):,}"
    draft.text("pct-n", f"{kept}{failed_words(counts)}")
    of = f" of {words.tokens(budget)}" if budget is not None else ""
    end = f" · {end_words(run.ends)}" if run.ends is not None else ""
    draft.text("pct-t", f"{words.tokens(used)}{of} tokens{end}")
    said = f"{run.percent} %, {words.plural(counts.running, 'sample')} in flight"
    draft.attr("all-b", aria_valuenow=str(run.percent), aria_valuetext=said)
    lay(draft, "all", lengths)
    return lengths.tick is not None


def _goal(partitions: Sequence[PartitionFigures]) -> int | None:
    """Return how many samples are wanted in all, None if no partition has a goal of its own."""
    if all(each.goal_samples is None for each in partitions):
        return None
    return sum(wanted_samples(each.counts, each.goal_samples) for each in partitions)


def _budget(run: RunFigures) -> int | None:
    """Return the tokens that may be spent: the run's budget, or the sum where all have one."""
    if run.token_budget_tokens is not None:
        return run.token_budget_tokens
    budgets = [each.token_budget_tokens for each in run.partitions]
    known = [budget for budget in budgets if budget is not None]
    return sum(known) if known and len(known) == len(budgets) else None
