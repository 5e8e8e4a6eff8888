"""How many more samples a token budget or a sample goal allows.

Owns the arithmetic of reservations; who sums and where is the ledger's claim transaction.
Used tokens are those that are, or will be, part of an answer (kept + held); reserved tokens are
what the answers in the making are expected to add to them.
Invariant: no admission takes used + reserved above a budget. Nothing is ever cut short to hit
it: answers that turn out longer than expected may pass it, by little. # prg-06

Near its end a budget is claimed ever fewer at a time. What is reserved may come out longer, and
only what comes out shorter can be corrected, by one more claim. So beside the reservation a margin
is kept free in proportion to it; each answer that ends makes it smaller and lets the next claim be
decided with better knowledge. With nothing in flight there is no margin: the last claim is made
exactly if an expected answer still fits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TypeGuard

from app.core.lengths import Lengths
from app.core.types import Counts

MIN_FINISHED = 20
# How far the reservation as a whole may fall short of what comes. The first answers to end are few
# and short, and all in flight are judged by them: their error is common and does not average out.
# Higher lands nearer and takes longer: `benchmarks/budget.py` shows both.
MARGIN_RATIO = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A limit in output tokens; what counts against it beside the claiming worker's own."""

    tokens: int
    used_tokens: int
    reserved_by_others: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """How many of the wanted claims may be made, and the reservation with them.

    `reached`: not one more fits, and nothing is reserved that could turn out shorter and make
    room; only a higher budget helps.
    """

    n: int
    reserved_tokens: int
    reached: bool = False


def reservation(
    lengths: Lengths | None, made: int, cap: int, min_finished: int = MIN_FINISHED
) -> int:
    """Return how many tokens to reserve for an answer that has `made` of at most `cap`.

    All that it may still bring, until `min_finished` answers of the partition have ended; then
    what it is expected to bring, given how long it already is.
    """
    room = max(0, cap - made)
    if room == 0 or not _is_known(lengths, min_finished):
        return room
    return min(room, ceil(lengths.expected(made) - made))


def margin(lengths: Lengths | None, reserved_tokens: int, min_finished: int = MIN_FINISHED) -> int:
    """Return how many tokens to keep free beside a reservation, for what it may fall short of.

    Nothing while all that may come is reserved, which cannot fall short.
    """
    if not _is_known(lengths, min_finished):
        return 0
    return ceil(MARGIN_RATIO * max(0, reserved_tokens))


def _is_known(lengths: Lengths | None, min_finished: int) -> TypeGuard[Lengths]:
    return lengths is not None and lengths.n_finished >= min_finished


def no_margin(_reserved_tokens: int) -> int:
    return 0


def admit(
    *,
    budgets: Sequence[Budget],
    reserved_tokens: int,
    needs: Iterable[int],
    margin: Callable[[int], int] = no_margin,
) -> Admission:
    """Return how many samples fit into every budget, taken in order; all without a budget.

    `needs` says what each would reserve and is asked one by one, no further than to the first
    that does not fit. `reserved_tokens` is what the claiming worker has reserved already;
    `margin(reserved)` what must stay free beside a reservation.
    """
    n = 0
    for need in needs:
        for budget in budgets:
            reserved = budget.reserved_by_others + reserved_tokens
            room = budget.tokens - budget.used_tokens - reserved - margin(reserved)
            if max(1, need) > room:
                reached = n == 0 and reserved <= 0
                return Admission(n=n, reserved_tokens=reserved_tokens, reached=reached)
        reserved_tokens += need
        n += 1
    return Admission(n=n, reserved_tokens=reserved_tokens)


def remaining_goal(goal_samples: int | None, counts: Counts) -> int:
    """Return how many more samples may be claimed: pending ones, as far as the goal asks for them.

    The goal counts kept answers. Those running are taken to be kept; one that fails makes room
    for another.
    """
    if goal_samples is None:
        return counts.pending
    return min(counts.pending, max(0, goal_samples - counts.kept - counts.running))
