"""How a partition stands, as one pill: a shape, a word, and whether it is filled.

Owns which state or condition a row shows when several hold. Pure. Invariants: normal is quiet,
only what needs a person is filled; shape and word say everything, colour nothing of its own.
"""

from dataclasses import dataclass

from app.core import format as words
from app.core.conditions import Condition, ConditionKind
from app.core.states import PartitionState, RunState
from app.figures import PartitionFigures, RunFigures

# what a partition's pill says with its figure, the gravest first: look, word, sign of the figure
_FIGURED = {
    ConditionKind.MANY_MISMATCHED: ("bad", "Mismatched", ""),
    ConditionKind.MANY_EMPTY: ("bad", "Empty", ""),
    ConditionKind.FAILING: ("bad", "Failing", ""),
    ConditionKind.MANY_DEGENERATE: ("warn", "Degenerate", ""),
    ConditionKind.MANY_TRUNCATED: ("warn", "Truncated", ""),
    ConditionKind.SLOW: ("warn", "Slow", "\N{MINUS SIGN}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pill:
    """`kind` is its look: run, wait, warn, bad, pause, drain, idle or done; `word` what it says."""

    kind: str
    word: str

    @property
    def plain_word(self) -> str:
        """The word without its age or figure, which change each second."""
        return self.word.split(" ")[0] if self.kind in ("bad", "warn") else self.word

    @property
    def rank(self) -> int:
        """Where its row stands: what needs a person first, all else by name.

        Two groups only: a row that moves because of a click brings another button under the hand.
        """
        return 0 if self.kind in ("bad", "warn") else 1


def standing(run: RunFigures, partition: PartitionFigures) -> Pill:
    """Return the pill of a partition."""
    return (
        _over(run, partition)
        or _resting(run, partition)
        or _troubled(run, partition)
        or _working(partition)
    )


def _over(run: RunFigures, partition: PartitionFigures) -> Pill | None:
    if not partition.is_over:
        return None
    if partition.sealed_at is None and run.state is RunState.RUNNING:
        return Pill(kind="drain", word="Writing the output")
    if partition.budget_reached and partition.counts.pending:
        return Pill(kind="idle", word="Budget used")
    return Pill(kind="done", word="Finished")


def _resting(run: RunFigures, partition: PartitionFigures) -> Pill | None:
    if run.state is RunState.STOPPED:
        return Pill(kind="idle", word="Stopped")
    if run.state is RunState.STOPPING:
        return Pill(kind="drain", word="Stopping")
    if partition.state is PartitionState.PAUSED or run.state is RunState.PAUSED:
        return Pill(kind="pause", word="Pausing" if partition.n_in_flight else "Paused")
    if partition.state is PartitionState.DRAINING:
        return Pill(kind="drain", word="Draining")
    return None


def _troubled(run: RunFigures, partition: PartitionFigures) -> Pill | None:
    if partition.intake == "scanning":
        return Pill(kind="wait", word="Reading prompts")
    found = {one.kind: one for one in run.conditions}
    if ConditionKind.WAITING_FOR_SERVER in found:
        return Pill(kind="wait", word="Waiting for server")
    stalled = found.get(ConditionKind.STALLED)
    if stalled is not None and partition.n_in_flight:
        return Pill(kind="warn", word=f"Stalled {since(run, stalled)}")
    mine = {one.kind: one for one in run.conditions if one.partition == partition.name}
    silent = mine.get(ConditionKind.PARTITION_STALLED)
    if silent is not None:
        return Pill(kind="warn", word=f"Stalled {since(run, silent)}")
    for condition_kind, (kind, word, sign) in _FIGURED.items():
        one = mine.get(condition_kind)
        if one is not None:
            return Pill(kind=kind, word=f"{word} {sign}{percent(one.ratio or 0.0)}")
    return None


def percent(ratio: float) -> str:
    """Return a share in whole percent, rounded down: 52 %."""
    return f"{int(100 * ratio)} %"


def since(run: RunFigures, condition: Condition) -> str:
    return words.span((run.at - condition.since).total_seconds())


def _working(partition: PartitionFigures) -> Pill:
    if partition.n_in_flight:
        return Pill(kind="run", word="Running")
    if partition.concurrency_requests == 0:
        return Pill(kind="wait", word="Waits its turn")
    if partition.intake == "scanned" and not partition.counts.running:
        return Pill(kind="wait", word="Tokenizing")
    return Pill(kind="wait", word="Waiting")
