"""How many more samples a token budget or a sample goal allows.

Owns the arithmetic of reservations; who sums and where is the ledger's claim transaction.
Used tokens are those that are, or will be, part of an answer (kept + held); reserved tokens are
what the answers in the making are expected to add to them.
Invariant: no admission takes used + reserved above the budget. Nothing is ever cut short to hit
it: answers that turn out longer than expected may pass it, by little. # prg-06
"""

from dataclasses import dataclass
from math import ceil

from app.core.lengths import Lengths
from app.core.types import Counts

MIN_FINISHED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """How many of the wanted claims may be made.

    `reached`: not one more fits, and nothing is reserved that could turn out shorter and make
    room; only a higher budget helps. `held_back` claims were wanted and must wait or stay.
    """

    n: int
    held_back: int
    reached: bool


def reservation(
    lengths: Lengths | None, made: int, cap: int, min_finished: int = MIN_FINISHED
) -> int:
    """Return how many tokens to reserve for an answer that has `made` of at most `cap`.

    All that it may still bring, until `min_finished` answers of the partition have ended; then
    what it is expected to bring, given how long it already is.
    """
    room = max(0, cap - made)
    if room == 0 or lengths is None or lengths.n_finished < min_finished:
        return room
    return min(room, ceil(lengths.expected(made) - made))


def admit(
    *,
    budget_tokens: int | None,
    used_tokens: int,
    reserved_tokens: int,
    each_tokens: int,
    wanted: int,
) -> Admission:
    """Return how many of `wanted` samples fit, each reserving `each_tokens`; all without budget."""
    if budget_tokens is None or wanted <= 0:
        return Admission(n=max(0, wanted), held_back=0, reached=False)
    room = budget_tokens - used_tokens - reserved_tokens
    n = min(wanted, max(0, room // max(1, each_tokens)))
    return Admission(n=n, held_back=wanted - n, reached=n == 0 and reserved_tokens <= 0)


def remaining_goal(goal_samples: int | None, counts: Counts) -> int:
    """Return how many more samples may be claimed: pending ones, as far as the goal asks for them.

    The goal counts kept answers. Those running are taken to be kept; one that fails makes room
    for another.
    """
    if goal_samples is None:
        return counts.pending
    return min(counts.pending, max(0, goal_samples - counts.kept - counts.running))
