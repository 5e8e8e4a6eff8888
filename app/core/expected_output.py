"""What a run may come to before it has begun: its output tokens and bytes, each as a range.

Owns the formulas. Pure. Nothing is known of the answers yet, so a range goes from answers that
fill a tenth of their limit to answers that fill all of it; budgets and goals cut both ends.

Bytes of a kept line: its ids as decimal numbers with commas, its text, and the other keys. With a
vocabulary of 150,000 an id takes 4 to 7 bytes and its text 3 to 6, the other keys 400 to 1,000
bytes of each line. While a partition is sealed its lines stand on the disk twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

LOW_FILL = 0.1
_LOW_BYTES_PER_TOKEN, _HIGH_BYTES_PER_TOKEN = 7, 13
_LOW_BYTES_PER_LINE, _HIGH_BYTES_PER_LINE = 400, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The least and the most that something may come to."""

    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a partition is asked for: answers of at most so many tokens each, within a budget."""

    n_answers: int
    max_new_tokens: int
    budget_tokens: int | None = None


def answers_wanted(n_prompts: int, samples_per_prompt: int, goal_samples: int | None) -> int:
    """Return how many answers a partition is to have: all samples, or the goal if that is less.

    >>> answers_wanted(100, 2, None), answers_wanted(100, 2, 70), answers_wanted(100, 2, 7_000)
    (200, 70, 200)
    """
    n_samples = n_prompts * samples_per_prompt
    return n_samples if goal_samples is None else min(n_samples, goal_samples)


def output_tokens(partitions: Sequence[Wanted], budget_tokens: int | None = None) -> Span:
    """Return the output tokens of partitions together; the budget is that of the run.

    Each partition: answers x limit x (0.1 to 1), at most its budget.

    >>> output_tokens([Wanted(n_answers=100, max_new_tokens=1_000)])
    Span(low=10000, high=100000)
    >>> one = Wanted(n_answers=100, max_new_tokens=1_000, budget_tokens=40_000)
    >>> output_tokens([one, one], 50_000)
    Span(low=20000, high=50000)
    """
    low = high = 0
    for each in partitions:
        most = each.n_answers * each.max_new_tokens
        few = max(each.n_answers, int(most * LOW_FILL))
        low += _within(few, each.budget_tokens)
        high += _within(most, each.budget_tokens)
    return Span(low=_within(low, budget_tokens), high=_within(high, budget_tokens))


def output_bytes(partitions: Sequence[Wanted], budget_tokens: int | None = None) -> Span:
    """Return the bytes that the answers of partitions may take while the run is at work.

    tokens x (7 to 13) + answers x (400 to 1,000), and at most the largest partition once more.

    >>> output_bytes([Wanted(n_answers=100, max_new_tokens=1_000)])
    Span(low=110000, high=2800000)
    >>> output_bytes([])
    Span(low=0, high=0)
    """
    tokens = output_tokens(partitions, budget_tokens)
    n_answers = sum(each.n_answers for each in partitions)
    largest = max((_most_bytes([each], budget_tokens) for each in partitions), default=0)
    return Span(
        low=tokens.low * _LOW_BYTES_PER_TOKEN + n_answers * _LOW_BYTES_PER_LINE,
        high=_most_bytes(partitions, budget_tokens) + largest,
    )


def _most_bytes(partitions: Sequence[Wanted], budget_tokens: int | None) -> int:
    tokens = output_tokens(partitions, budget_tokens).high
    n_answers = sum(each.n_answers for each in partitions)
    return tokens * _HIGH_BYTES_PER_TOKEN + n_answers * _HIGH_BYTES_PER_LINE


def _within(n_tokens: int, budget_tokens: int | None) -> int:
    return n_tokens if budget_tokens is None else min(n_tokens, budget_tokens)
