"""The figures of a run as sentences and cells: headline, plain lines, what a table's cells say.

Owns the wording of whole runs and rows; single quantities are `core/format.py`'s, layout is the
terminal's. Pure. Invariant: a state is said once in a row, and no end where nothing is left.
"""

from app.core import format as words
from app.core.conditions import ConditionKind
from app.core.estimate import Estimate, Unknown, wanted_samples
from app.core.landing import end_words
from app.core.states import PartitionState, RunState
from app.figures.concerns import concerns, standstill
from app.figures.shapes import PartitionFigures, RunFigures


def summary(figures: RunFigures) -> list[str]:
    """Return the run as plain lines: the headline, what needs a person, each partition."""
    local = figures.at.astimezone()
    width = max((len(each.name) for each in figures.partitions), default=0)
    lines = [f"{local:%H:%M:%S} {headline(figures)}"]
    lines += [f"  {one}" for one in further(figures)]
    return lines + [f"  {_line(figures, each, width)}" for each in figures.partitions]


def headline(figures: RunFigures) -> str:
    """Return the sentence that answers how fast, how long, and whether somebody is needed."""
    parts = [f"{words.one_line(figures.name)}: {_standing(figures)}"]
    if figures.speed_tokens_per_s is not None:
        parts.append(words.speed(figures.speed_tokens_per_s))
    parts += _end(figures)
    if figures.state is RunState.RUNNING and figures.ends is not None:
        parts.append(end_words(figures.ends))
    if figures.deadline_at is not None and figures.deadline_at > figures.at:
        clock = words.clock_time(figures.deadline_at.astimezone(), figures.at.astimezone())
        parts.append(f"deadline {clock}")
    if further(figures):
        parts.append("needs you, see below")
    else:
        parts.append("needs you" if concerns(figures) else "nothing needs you")
    return "; ".join(parts)


def _standing(figures: RunFigures) -> str:
    """Return state and percent; of a run that stands still, why and how it goes on."""
    still = standstill(figures)
    if still is None:
        return f"{figures.state}, {figures.percent} %"
    state = "paused"
    if still.kind is ConditionKind.NOT_SERVED:
        since = words.clock_time(still.since.astimezone(), figures.at.astimezone())
        state = f"not running since {since}"
    return f"{state}: {words.one_line(still.sentence)}; {figures.percent} %"


def _end(figures: RunFigures) -> list[str]:
    left = figures.time_left
    if figures.state is not RunState.RUNNING or standstill(figures) is not None:
        return []
    if isinstance(left, Unknown):
        return [f"end: {left.why}"]
    end = words.done_at(left, figures.at.astimezone())
    # nothing left, or further away than a clock time says anything of
    return [f"done at {end} in {words.time_left(left)}"] if end and left.high_s > 0 else []


def further(figures: RunFigures) -> list[str]:
    """Return the concerns that the headline does not say itself."""
    still = standstill(figures)
    said = None if still is None else words.one_line(still.sentence)
    return [one for one in concerns(figures) if one != said]


def _line(run: RunFigures, figures: PartitionFigures, width: int) -> str:
    samples = samples_text(figures)
    cells = [
        f"{figures.name:<{width}} {figures.percent:>3} %",
        samples if _is_empty(figures) else f"{samples} samples",
        f"{words.tokens(figures.tokens.used)} tokens",
    ]
    if figures.speed_tokens_per_s is not None:
        cells.append(words.speed(figures.speed_tokens_per_s))
    left = time_left_text(run, figures)
    is_time = left and isinstance(figures.time_left, Estimate) and figures.time_left.high_s > 0
    cells += [f"{left} left" if is_time else left] if left else []
    if figures.ends is not None:
        cells.append(end_words(figures.ends))
    if figures.n_in_flight:
        cells.append(f"{figures.n_in_flight:,} in flight")
    if figures.counts.failed:
        cells.append(f"{figures.counts.failed:,} failed")
    return ", ".join([*cells, state_text(run, figures)])


def _is_empty(figures: PartitionFigures) -> bool:
    return figures.counts.total == 0 and figures.intake != "scanning"


def samples_text(figures: PartitionFigures) -> str:
    """Return what is kept of what is wanted."""
    if _is_empty(figures):
        return "no records"
    kept, goal = figures.counts.kept, figures.goal_samples
    if goal is not None and kept > goal:
        return f"{kept:,}/{kept:,} (goal {goal:,})"
    return f"{kept:,}/{wanted_samples(figures.counts, goal):,}"


def _resting(run: RunFigures, figures: PartitionFigures) -> str | None:
    """Return the one word for a partition of which nothing can go on now, None if it can."""
    if figures.is_over:
        return None
    if run.state is RunState.RUNNING and figures.state is PartitionState.PAUSED:
        return "paused"
    if run.state is not RunState.RUNNING:
        return str(run.state)
    still = standstill(run)
    return "not running" if still and still.kind is ConditionKind.NOT_SERVED else None


def time_left_text(run: RunFigures, figures: PartitionFigures) -> str:
    """Return the time left; nothing where the state says already that nothing goes on."""
    return "" if _resting(run, figures) else words.time_left(figures.time_left)


def state_text(run: RunFigures, figures: PartitionFigures) -> str:
    """Return the one word for how the partition stands, and its remarks."""
    is_ended = figures.is_over and figures.sealed_at
    state = "finished" if is_ended else _resting(run, figures) or str(figures.state)
    return words.one_line("; ".join([state, *figures.remarks]))
