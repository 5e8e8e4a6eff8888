"""Why a partition does not move, in a sentence or two.

Pure. Invariant: what is said is seen, not guessed: requests in flight, the age of the newest token,
and what the servers say of themselves.
"""

from collections.abc import Sequence

from app.core import format as words
from app.core.loads import ServerLoad
from app.core.states import PartitionState, RunState
from app.figures import PartitionFigures, RunFigures

_SILENT_S = 60.0


def standstill(run: RunFigures, partition: PartitionFigures) -> str:
    """Return why nothing comes, "" while something does or nothing is to."""
    if run.state is not RunState.RUNNING or partition.is_over:
        return ""
    if partition.n_in_flight:
        return _silence(run, partition)
    if partition.state is not PartitionState.ACTIVE or partition.intake == "scanning":
        return ""
    if partition.concurrency_requests is None:
        return "Nothing is in flight: its worker has not begun yet."
    if partition.concurrency_requests == 0:
        return "Nothing is in flight: others use the concurrency of its class, or are before it."
    return f"Nothing is in flight. {servers_say(run)}"


def _silence(run: RunFigures, partition: PartitionFigures) -> str:
    last = partition.last_token_at
    silent_s = (run.at - last).total_seconds() if last is not None else None
    if silent_s is not None and silent_s < _SILENT_S:
        return ""
    flying = words.plural(partition.n_in_flight, "request")
    verb = "is" if partition.n_in_flight == 1 else "are"
    newest = "no token yet" if silent_s is None else f"newest token {words.span(silent_s)} ago"
    return f"{flying} {verb} in flight, {newest}. {servers_say(run)}"


def servers_say(run: RunFigures) -> str:
    """Return whether the servers answer, and what waits in their queues."""
    away = [each for each in run.servers if each.away_since is not None]
    if away and len(away) == len(run.servers):
        since = max(each.away_since or run.at for each in away)
        return f"SGLang has not answered for {words.span((run.at - since).total_seconds())}."
    asked = [each for each in run.servers if each.at is not None and each not in away]
    if not asked:
        return "What SGLang does is not known yet."
    said = "SGLang answers" if not away else f"{len(asked)} of {len(run.servers)} servers answer"
    return f"{said}{_queue(asked)}."


def _queue(loads: Sequence[ServerLoad]) -> str:
    waiting = [each.waiting_requests for each in loads if each.waiting_requests is not None]
    running = [each.running_requests for each in loads if each.running_requests is not None]
    told = []
    if running:
        told.append(f"it runs {words.plural(sum(running), 'request')}")
    if waiting:
        told.append(f"its queue holds {sum(waiting):,}")
    return f"; {', '.join(told)}" if told else ""
