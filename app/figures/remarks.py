"""What is said beside a partition: what it is busy with, its worker's words, how answers ended.

Owns the sentences of one partition and when its outcomes are bad enough for a person to look.
Pure. Invariant: what is not the rule (rejected, truncated, suspect, empty) is never without words.
"""

from collections.abc import Sequence
from datetime import datetime

from app.core.format import plural
from app.core.types import Counts
from app.core.views import PartitionView, WorkerView
from app.settings import Settings

# A worker records each tick; so much later, and four ticks, it waits for disk or ledger.
_SLOW_AFTER_S = 2.5
# of fewer answers, a share says little
_MIN_KEPT = 20


def remarks(partition: PartitionView, mine: Sequence[WorkerView]) -> tuple[str, ...]:
    """Return the remarks of a partition whose living workers are `mine`, the passing ones first."""
    found = []
    if partition.intake == "scanning":
        found.append("reading the prompts")
    elif partition.intake == "scanned" and not partition.is_over:
        found.append(f"tokenizing the prompts, {partition.n_tokenized:,} done")
    if partition.n_waiting and not partition.is_over:
        found.append(f"{partition.n_waiting:,} wait for earlier turns")
    if partition.budget_reached and partition.counts.pending:
        found.append("budget reached")
    if partition.goal_reached and partition.counts.pending:
        found.append("goal reached")
    notices = dict.fromkeys(worker.notice for worker in mine if worker.notice)
    return (*found, *notices, *outcomes(partition.counts))


def outcomes(counts: Counts) -> list[str]:
    """Say how many samples ended otherwise than they should; failed ones have their own column."""
    said = [
        (counts.rejected, "rejected"),
        (counts.truncated, "truncated (cut at max_new_tokens)"),
        (counts.suspect, "suspect"),
        (counts.empty, "empty"),
    ]
    return [f"{n:,} {how}" for n, how in said if n]


def troubles(name: str, counts: Counts, *, is_cut_said: bool = False) -> list[str]:
    """Return what of a partition's outcomes a person should look at.

    `is_cut_said`: a condition says already that many of the last ones are truncated.
    """
    found = []
    if counts.rejected * 2 > counts.total:
        found.append(
            f"{counts.rejected:,} of {plural(counts.total, 'record')} of {name} are rejected,"
            f" see {name}/rejected.jsonl in the output folder."
        )
    is_cut = counts.kept >= _MIN_KEPT and counts.truncated * 2 > counts.kept
    if is_cut and not is_cut_said:
        found.append(
            f"{counts.truncated:,} of {plural(counts.kept, 'answer')} of {name} are truncated:"
            " max_new_tokens cuts most of them."
        )
    return found


def slowness(mine: Sequence[WorkerView], settings: Settings, now: datetime) -> list[str]:
    """Say that a worker's ticks come late: it waits for disk or ledger, not for the server."""
    slowest_s = unrecorded_s(mine, settings, now)
    return [f"storage slow: nothing could be recorded for {slowest_s:.0f} s"] if slowest_s else []


def unrecorded_s(mine: Sequence[WorkerView], settings: Settings, now: datetime) -> float:
    """Return for how long the latest worker has recorded nothing, 0 while none is late."""
    late_s = [
        (now - worker.lease_expires_at).total_seconds() + settings.lease_s
        for worker in mine
        if worker.state != "starting"
    ]
    slowest_s = max(late_s, default=0.0)
    return slowest_s if slowest_s >= max(_SLOW_AFTER_S, 4 * settings.tick_s) else 0.0
