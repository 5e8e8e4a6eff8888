"""What the cells of a partition's row say beside plain figures: time left, in flight, remarks.

Owns the words for each state, and that what cannot be said is a dash with its reason. Pure.
"""

from collections.abc import Sequence

from app.core import format as words
from app.core.states import PartitionState, RunState
from app.figures import PartitionFigures, RunFigures
from app.web.meanings import tokens_to_finish
from app.web.standing import Pill
from app.web.wording import DASH, left, left_about, moment, work_left

# so long after a start, who has no worker yet may just be about to get one
_SETTLED_S = 15.0


def asked(run: RunFigures) -> str:
    """Return that more is asked than the servers run at once, "" where that is not so or known."""
    most = [load.max_running_requests for load in run.servers]
    known = [each for each in most if each is not None]
    if run.state is not RunState.RUNNING or not known or len(known) < len(most):
        return ""
    wanted = sum(
        each.concurrency_requests or 0
        for each in run.partitions
        if each.state is PartitionState.ACTIVE and not each.is_over
    )
    if wanted <= sum(known):
        return ""
    waiting = [load.waiting_requests for load in run.servers if load.waiting_requests is not None]
    rest = f": {sum(waiting):,} wait" if len(waiting) == len(most) else ""
    servers = "server runs" if len(known) == 1 else "servers run"
    return f"{wanted:,} asked, {servers} {sum(known):,}{rest}"


def left_cells(run: RunFigures, partition: PartitionFigures, pill: Pill) -> tuple[str, str]:
    """Return the time left, and what stands under it."""
    if pill.kind == "done":
        return "done", ""
    if pill.kind == "drain" and partition.n_in_flight:
        return DASH, f"{words.plural(partition.n_in_flight, 'request')} to finish"
    if pill.plain_word == "Stalled" and partition.last_token_at:
        silent = words.span((run.at - partition.last_token_at).total_seconds())
        return DASH, f"no token for {silent}"
    before = _starts_after(run, partition, pill)
    if before:
        return DASH, f"starts after {before}"
    return _work(partition, pill)


def _work(partition: PartitionFigures, pill: Pill) -> tuple[str, str]:
    if pill.word == "Budget used":
        return _to_finish(partition)
    if partition.is_over or pill.kind in ("pause", "idle"):
        return work_left(partition.time_left), ""
    return left(partition.time_left), left_about(partition.time_left)


def _to_finish(partition: PartitionFigures) -> tuple[str, str]:
    """Return what a budget would have to be raised by, as far as the answers kept tell."""
    tokens = tokens_to_finish(partition)
    if tokens is None:
        return DASH, "too few answers to say what is left"
    return f"+{words.tokens(round(tokens))}", "tokens to finish, about"


def _starts_after(run: RunFigures, partition: PartitionFigures, pill: Pill) -> str:
    """Return the partition that comes before this one, where those of a class take turns.

    It has no worker though it could work, and one before it has: seen at the first looks of a run
    too, so it is said only later.
    """
    begun = max(run.state_since, partition.state_since)
    is_new = (run.at - begun).total_seconds() < _SETTLED_S
    if pill.word != "Waiting" or partition.concurrency_requests is not None or is_new:
        return ""
    before = [
        each
        for each in run.partitions
        if each.class_name == partition.class_name
        and each.id < partition.id
        and not each.is_over
        and each.state is PartitionState.ACTIVE
    ]
    return before[-1].name if any(each.n_in_flight for each in before) else ""


def silent_since(run: RunFigures, partition: PartitionFigures, main: str) -> str:
    """Return since when nothing has come, where no time left can be said."""
    at = partition.last_token_at
    if main != DASH or at is None or run.state is not RunState.RUNNING:
        return ""
    return f"no token since {moment(at, run.at)}" if not partition.speed_tokens_per_s else ""


def in_flight(run: RunFigures, partition: PartitionFigures) -> str:
    """Return how many requests are in flight, and where that is not what is wanted."""
    if partition.is_over and not partition.n_in_flight:
        return ""
    said = f"{partition.n_in_flight:,} in flight"
    wanted = partition.concurrency_requests
    if wanted is not None and not partition.is_over and partition.n_in_flight > wanted:
        return f"{said}, drains to {wanted:,}"
    is_sending = run.state is RunState.RUNNING and partition.state is PartitionState.ACTIVE
    is_short = wanted is not None and partition.n_in_flight < min(wanted, partition.counts.pending)
    if is_sending and is_short and partition.n_in_flight and partition.own_concurrency:
        return f"{partition.n_in_flight:,} of {wanted:,} in flight"
    return said


def remarks(partition: PartitionFigures) -> Sequence[str]:
    """Return what is said under a row's bar."""
    said = [each for each in partition.remarks if each not in ("reading the prompts",)]
    if partition.reason and partition.reason != "drained":
        said.insert(0, partition.reason)
    return [words.one_line(each) for each in said]
