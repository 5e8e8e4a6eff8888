"""The bar of progress: kept, failed and in flight side by side, a tick for the tokens spent.

Owns the lengths on one scale of 0 to 100 (per cent of the samples wanted), and their words. Pure.
Invariants: kept and failed are 100 together only when nothing is left; what failed has a colour
of its own.
"""

from dataclasses import dataclass

from app.core import format as words
from app.core.estimate import percent as share_of_samples
from app.core.estimate import wanted_samples
from app.core.landing import EndsBy, Landing, end_words
from app.core.types import Counts
from app.web.draft import Draft

_LEAST_WIDTH = 0.4
_FULL_PERCENT = 99
_LAST_TICK = 99.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Lengths in per cent of the whole. `tick` is tokens used of the budget, None without one."""

    done: float
    failed: float
    flying: float
    tick: float | None


def bar(
    counts: Counts, goal: int | None, used_tokens: int, budget_tokens: int | None, percent: int
) -> Bar:
    """Return the lengths; tenths of a per cent, rounded down.

    `percent` is what the words beside it say. It decides alone where no sample is known: before
    the prompts are read nothing is done, of a run without any prompt all is.
    """
    wanted = wanted_samples(counts, goal)
    over = counts.kept if goal is not None else counts.kept + counts.failed
    share = _tenths(over, wanted) if wanted > 0 else float(percent)
    done = min(share, _tenths(counts.kept, wanted)) if wanted > 0 else share
    flying = max(_tenths(counts.running, wanted), _LEAST_WIDTH) if counts.running else 0.0
    tick = None if budget_tokens is None else _tenths(used_tokens, budget_tokens)
    return Bar(
        done=done,
        failed=round(share - done, 1),
        flying=round(min(flying, 100.0 - share), 1),
        tick=tick,
    )


def lay(draft: Draft, key: str, lengths: Bar) -> None:
    """Write the lengths into the bar whose ids begin with `key` (templates/bar.html)."""
    over = round(lengths.done + lengths.failed, 1)
    draft.attr(f"{key}-d", width=f"{lengths.done:g}")
    draft.attr(f"{key}-z", x=f"{lengths.done:g}", width=f"{lengths.failed:g}")
    draft.attr(f"{key}-g", x=f"{over:g}", width=f"{lengths.flying:g}")
    if lengths.tick is not None:
        draft.attr(f"{key}-k", x=f"{min(lengths.tick, _LAST_TICK):g}")


def _tenths(part: int, whole: int) -> float:
    return 100.0 if whole <= 0 else min(100.0, (1000 * part // whole) / 10)


def progress_words(
    percent: int,
    counts: Counts,
    goal: int | None,
    used_tokens: int,
    budget_tokens: int | None,
    ends: Landing | None = None,
) -> str:
    """Return what stands under a bar; with `ends`, also where budget or deadline end the work."""
    wanted = wanted_samples(counts, goal)
    done = counts.kept
    is_of_budget = budget_tokens is not None and percent > share_of_samples(counts, goal)
    share = f"{percent} % of the budget" if is_of_budget else f"{percent} %"
    parts = [share, f"{done:,} of {max(wanted, done):,} samples{failed_words(counts)}"]
    if budget_tokens is None:
        parts.append(f"{words.tokens(used_tokens)} tokens")
    else:
        parts.append(f"{words.tokens(used_tokens)} of {words.tokens(budget_tokens)} tokens")
    if ends is not None:
        parts.append(end_words(ends))
    return " · ".join(parts)


def failed_words(counts: Counts) -> str:
    """Return what stands behind a number of kept samples: the per cent beside it hold failed ones.

    >>> failed_words(Counts(ok=28, failed=16)), failed_words(Counts(ok=28))
    (', 16 failed', '')
    """
    return f", {counts.failed:,} failed" if counts.failed else ""


def is_over(ends: Landing | None) -> bool:
    """Return whether the tick is to stand out: the budget ends before the samples do."""
    return ends is not None and ends.by is EndsBy.BUDGET and ends.percent < _FULL_PERCENT
