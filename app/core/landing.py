"""Where a budget or a deadline will end the work: at which share of the samples.

Pure arithmetic on what is expected: lengths as Kaplan-Meier sees them, the time left as the
estimate says. Invariant: nothing is said where all samples fit, nor before enough answers have
ended to know how long they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.core.budget import MIN_FINISHED
from app.core.estimate import samples_left, wanted_samples
from app.core.lengths import Lengths
from app.core.types import Counts


class EndsBy(StrEnum):
    BUDGET = "budget"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The end falls at this share of the samples wanted, 0-99, because of that."""

    percent: int
    by: EndsBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Where work is and where it goes: samples done, to be done before its budget ends, wanted.

    `tokens` are those that it will take from here to its end.
    """

    done: float
    at_end: float
    wanted: int
    tokens: float


def course(
    counts: Counts,
    goal_samples: int | None,
    lengths: Lengths,
    started_tokens: Sequence[int],
    budget_left_tokens: int | None,
) -> Course | None:
    """Return the course of one partition; None while too few answers have ended.

    What has been started is finished first; what is then left of the budget goes into fresh
    answers of the expected length. `started_tokens` are the lengths so far, running or held.
    """
    if lengths.n_finished < MIN_FINISHED:
        return None
    n_left = samples_left(counts, goal_samples)
    wanted = wanted_samples(counts, goal_samples)
    # the longest first: if the goal needs fewer than were begun, those are nearest to their end
    started = sorted(started_tokens, reverse=True)[:n_left]
    n_fresh, each = n_left - len(started), lengths.expected()
    begun = sum(lengths.expected(made) - made for made in started if made < lengths.cap_tokens)
    tokens = begun + n_fresh * each
    if budget_left_tokens is not None and budget_left_tokens < tokens:
        room = max(0.0, budget_left_tokens - begun)
        n_fresh_fit = min(n_fresh, room / each)
        tokens = float(max(0, budget_left_tokens))
    else:
        n_fresh_fit = float(n_fresh)
    done = float(max(0, wanted - n_left))
    return Course(done=done, at_end=done + len(started) + n_fresh_fit, wanted=wanted, tokens=tokens)


def at_rest(counts: Counts, goal_samples: int | None) -> Course:
    """Return the course of a partition that makes no more."""
    wanted = wanted_samples(counts, goal_samples)
    done = float(max(0, wanted - samples_left(counts, goal_samples)))
    return Course(done=done, at_end=done, wanted=wanted, tokens=0.0)


def together(courses: Sequence[Course], budget_left_tokens: int | None) -> Course:
    """Return the course of a run, under its own budget too: what it cuts, it cuts in proportion."""
    done, tokens = sum(each.done for each in courses), sum(each.tokens for each in courses)
    at_end = sum(each.at_end for each in courses)
    if budget_left_tokens is not None and budget_left_tokens < tokens:
        room = float(max(0, budget_left_tokens))
        at_end, tokens = done + (at_end - done) * room / tokens, room
    return Course(
        done=done, at_end=at_end, wanted=sum(each.wanted for each in courses), tokens=tokens
    )


def landing(way: Course, time_left_s: float | None, deadline_in_s: float | None) -> Landing | None:
    """Return what ends the work before all its samples are done; None if nothing does.

    `time_left_s` is to the end of the budget or of the samples; None if not known.
    """
    if _share(way.done, way) >= 1:
        return None
    end, by = way.at_end, EndsBy.BUDGET if _share(way.at_end, way) < 1 else None
    if deadline_in_s is not None and time_left_s is not None and deadline_in_s < time_left_s:
        ahead = max(0.0, deadline_in_s) / time_left_s
        end, by = way.done + (way.at_end - way.done) * ahead, EndsBy.DEADLINE
    return None if by is None else Landing(percent=min(99, int(100 * _share(end, way))), by=by)


def _share(samples: float, way: Course) -> float:
    # a sum of floats that should be whole may lie a little below
    return 1.0 if samples >= way.wanted - 1e-6 else samples / way.wanted


def end_words(ends: Landing) -> str:
    """Return where the work will end, in words.

    >>> end_words(Landing(percent=79, by=EndsBy.BUDGET))
    'budget ends at 79 % of the samples'
    >>> end_words(Landing(percent=62, by=EndsBy.DEADLINE))
    'the deadline ends it at about 62 %'
    """
    if ends.by is EndsBy.BUDGET:
        return f"budget ends at {ends.percent} % of the samples"
    return f"the deadline ends it at about {ends.percent} %"
