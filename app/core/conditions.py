"""What is said beyond the stored states: the kinds of condition, and what one is.

A condition is derived from facts and a `now`: of a run by `conditions_of_run.py`, of a partition by
`conditions_of_partition.py`. It is never stored as a state; the previous ones are handed in only so
that a condition keeps its beginning and ends with a margin. Invariant: (kind, partition) is unique
among those that hold.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

# how the reason of a run begins whose server is not the one that it began with
SERVER_CHANGED = "server changed: "


def after_server_change(resume_command: str) -> str:
    """Return what a person can do about it."""
    return (
        f"Start the one that the run began with, then: {resume_command}; or keep this one: start"
        " the run again with --accept-changes."
    )


class ConditionKind(StrEnum):
    NOT_SERVED = "not served"
    ALL_PAUSED = "all paused"
    SERVER_CHANGED = "server changed"
    LEDGER_FULL = "ledger disk full"
    LEDGER_LOCKED = "ledger locked"
    WAITING_FOR_SERVER = "waiting for server"
    STALLED = "stalled"
    DISK_LOW = "disk low"
    STORAGE_SLOW = "storage slow"
    LEDGER_LOG = "ledger log large"
    PARTITION_STALLED = "partition stalled"
    MANY_MISMATCHED = "many mismatched"
    MANY_EMPTY = "many empty"
    FAILING = "failing"
    MANY_DEGENERATE = "many degenerate"
    MANY_TRUNCATED = "many truncated"
    SLOW = "slow"
    DRAINING = "draining"
    BUDGET_REACHED = "budget reached"


PARTITION_KINDS = (
    ConditionKind.PARTITION_STALLED,
    ConditionKind.MANY_MISMATCHED,
    ConditionKind.MANY_EMPTY,
    ConditionKind.FAILING,
    ConditionKind.MANY_DEGENERATE,
    ConditionKind.MANY_TRUNCATED,
    ConditionKind.SLOW,
    ConditionKind.DRAINING,
    ConditionKind.BUDGET_REACHED,
)
# what was asked for and goes its way needs nobody
CALM_KINDS = frozenset({ConditionKind.DRAINING, ConditionKind.BUDGET_REACHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A remark that holds now, since when, and the sentence that says it.

    `partition` is the name of the one partition that it is of, "" for the whole run. Conditions of
    one kind hold for several partitions at once: (kind, partition) is what tells them apart.
    `ratio` is its figure where it has one: the share of the outcomes, or of the speed that is
    missing. `wastes`: going on would only make more of it, so that the partition is to be paused.
    """

    kind: ConditionKind
    since: datetime
    sentence: str
    partition: str = ""
    ratio: float | None = None
    wastes: bool = False

    @property
    def key(self) -> tuple[ConditionKind, str]:
        return self.kind, self.partition


Key = tuple[ConditionKind, str]


def by_key(conditions: Iterable[Condition]) -> Mapping[Key, Condition]:
    return {one.key: one for one in conditions}
