"""The sentence of the verdict: how long a run has gone on, and how its partitions stand.

Owns these words; the pill beside them is `head`'s. Pure.
"""

from datetime import datetime

from app.core import format as words
from app.core.states import RunState
from app.figures import RunFigures
from app.web.standing import standing
from app.web.wording import DASH, moment

_ORDER = ("bad", "warn", "run", "drain", "wait", "pause", "idle", "done")


def sentence(run: RunFigures) -> str:
    """Return what stands beside the pill of a whole run: since when, and how its parts stand."""
    counts = run.counts
    if run.state is RunState.FINISHED:
        took = _span(run.created_at, run.state_since)
        failed = f", {words.plural(counts.failed, 'sample')} failed" if counts.failed else ""
        return f"Finished after {took}: {words.plural(counts.kept, 'answer')}{failed}."
    if run.state is RunState.STOPPED:
        return f"Stopped with {words.plural(counts.kept, 'answer')} kept. Resume goes on."
    began = f"Started {_span(run.created_at, run.at)} ago."
    if run.deadline_at is not None and run.deadline_at > run.at:
        began += f" Stops {moment(run.deadline_at, run.at)}."
    if run.state is RunState.PAUSED:
        return f"{began} Paused for {_span(run.state_since, run.at)}; nothing is lost."
    return f"{began} {_groups(run)}"


def _span(begin: datetime | None, end: datetime) -> str:
    return DASH if begin is None else words.span((end - begin).total_seconds())


def _groups(run: RunFigures) -> str:
    """Say how many partitions stand how, those that need a person first."""
    if not run.partitions:
        return "No partitions."
    found: dict[str, int] = {}
    pills = sorted(
        (standing(run, each) for each in run.partitions), key=lambda pill: _ORDER.index(pill.kind)
    )
    for pill in pills:
        word = pill.plain_word.lower()
        found[word] = found.get(word, 0) + 1
    listed = [f"{n} {word}" for word, n in found.items()]
    noun = "partition" if len(run.partitions) == 1 else "partitions"
    return f"{words.plural(len(run.partitions), noun, noun)}: {', '.join(listed)}."
