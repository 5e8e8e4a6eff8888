"""Failures in groups: reasons that differ only in numbers together, over partitions.

Owns what a group is called and how its count is told. Pure. Invariant: a count that is not known to
be whole says that it is the least there can be.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from app.core import format as words
from app.core.reasons import Choice, form_of, group_of, lasting
from app.core.states import RETRYABLE, SampleState
from app.core.types import PartitionId
from app.core.visible import visible_line
from app.ledger.failures import Survey, Variant

_LONGEST = 400
_WITHOUT_REASON = {
    SampleState.EMPTY: "the answer is empty: the model ended it at once",
    SampleState.SUSPECT: "the answer repeats itself",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many; `is_least`: or more."""

    n: int = 0
    is_least: bool = False

    def __add__(self, other: "Count") -> "Count":
        return Count(n=self.n + other.n, is_least=self.is_least or other.is_least)

    def __str__(self) -> str:
        return f"{self.n:,}+" if self.is_least else f"{self.n:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One line of the page. `lasting` says why a retry does not help, "" where it may."""

    key: str
    state: SampleState
    reason: str
    n_forms: int
    lasting: str
    count: Count
    by_partition: tuple[tuple[str, Count], ...]
    example: int
    first_at: datetime | None
    last_at: datetime | None

    @property
    def can_retry(self) -> bool:
        return self.state in RETRYABLE


def groups_of(found_by: Survey, names: Mapping[PartitionId, str], choice: Choice) -> list[Group]:
    """Return the groups that are meant, the largest first.

    Where a partition has more reasons than were looked at, a group may have more members.
    """
    open_places = frozenset(found_by.unfinished)
    found: dict[str, list[Variant]] = {}
    for one in found_by.variants:
        if choice.takes(one.state, one.reason):
            is_least = one.is_least or (one.partition_id, one.state) in open_places
            group = found.setdefault(group_of(one.state, one.reason), [])
            group.append(replace(one, is_least=is_least))
    groups = [_group(key, members, names) for key, members in found.items()]
    return sorted(groups, key=lambda group: (-group.count.n, group.reason))


def _group(key: str, members: list[Variant], names: Mapping[PartitionId, str]) -> Group:
    first = members[0]
    by_partition: dict[str, Count] = {}
    for one in members:
        name = names.get(one.partition_id, str(one.partition_id))
        counted = Count(n=one.n, is_least=one.is_least)
        by_partition[name] = by_partition.get(name, Count()) + counted
    reasons = {one.reason for one in members}
    reason = first.reason if len(reasons) == 1 else form_of(first.reason)
    begins = [one.first_at for one in members if one.first_at]
    ends = [one.last_at for one in members if one.last_at]
    return Group(
        key=key,
        state=first.state,
        reason=_shown(first.state, reason),
        n_forms=len(reasons),
        # not each of a group need be lasting: numbers do not decide it, so one stands for all
        lasting=lasting(first.state, first.reason) or "",
        count=sum(by_partition.values(), Count()),
        by_partition=tuple(sorted(by_partition.items())),
        example=first.first,
        first_at=min([*begins, *ends], default=None),
        last_at=max([*begins, *ends], default=None),
    )


def _shown(state: SampleState, reason: str | None) -> str:
    text = visible_line(" ".join((reason or "").split()))
    if not text:
        return _WITHOUT_REASON.get(state, "no reason was noted")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def total(groups: Iterable[Group]) -> Count:
    return sum((group.count for group in groups), Count())


def retryable(groups: Iterable[Group]) -> Count:
    """Return how many a retry would move."""
    return total(group for group in groups if group.can_retry)


def doomed(groups: Iterable[Group]) -> list[tuple[str, Count]]:
    """Return what a retry would move in vain: each cause with its count."""
    found: dict[str, Count] = {}
    for group in groups:
        if group.can_retry and group.lasting:
            found[group.lasting] = found.get(group.lasting, Count()) + group.count
    return list(found.items())


def warning(groups: Iterable[Group]) -> str:
    """Return what is in vain as a sentence, "" where nothing is.

    Of 37 failures, 31 too long: "31 of them would fail again: they exceed the context."
    """
    found = doomed(groups)
    if not found:
        return ""
    n = sum((count for _, count in found), Count())
    return f"{n} of them would fail again: {'; '.join(cause for cause, _ in found)}."


def how_they_ended(groups: Iterable[Group]) -> str:
    """Return how many there are of each kind, as the tab counts them: what failed, then the rest.

    "56 failed, 2 rejected, 16 empty or suspect"
    """
    found = dict.fromkeys(("failed", "rejected", "empty or suspect"), Count())
    for group in groups:
        is_plain = group.state in (SampleState.FAILED, SampleState.REJECTED)
        found[str(group.state) if is_plain else "empty or suspect"] += group.count
    return ", ".join(f"{count} {kind}" for kind, count in found.items() if count.n)


def samples(count: Count) -> str:
    noun = "sample" if count.n == 1 and not count.is_least else "samples"
    return f"{count} {noun}"


def clock(at: datetime | None, now: datetime) -> str:
    return "–" if at is None else words.clock_time(at.astimezone(), now.astimezone())
