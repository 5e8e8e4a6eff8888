"""The stored states and the one table of moves between them.

Owns: what a sample, a partition and a run can be, and which event leads where.
Everything else that a page may say (stalled, waiting for server, …) is a condition
(`core/conditions.py`), never a state. Invariant: over any sequence of moves the states of a
partition's samples sum to its total, because each move takes one sample from one state to one.
"""

from enum import StrEnum


class SampleState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    OK = "ok"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    SUSPECT = "suspect"
    FAILED = "failed"
    REJECTED = "rejected"


class PartitionState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DRAINING = "draining"


class RunState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"


# a run that is looked at: it works, or may at any moment
LIVE_RUN_STATES = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


class SampleEvent(StrEnum):
    CLAIM = "claim"
    KEEP_OK = "keep as ok"
    KEEP_TRUNCATED = "keep as truncated"
    KEEP_EMPTY = "keep as empty"
    KEEP_SUSPECT = "keep as suspect"
    FAIL = "fail"
    PUT_BACK = "put back"
    REJECT = "reject"
    RETRY = "retry"
    EXTEND = "extend"
    LOSE_LINE = "lose line"
    WAIT_AGAIN = "wait again"


KEPT = frozenset({SampleState.OK, SampleState.TRUNCATED, SampleState.EMPTY, SampleState.SUSPECT})
OPEN = frozenset({SampleState.PENDING, SampleState.RUNNING})
RETRYABLE = frozenset({SampleState.FAILED, SampleState.EMPTY, SampleState.SUSPECT})

_P, _R = SampleState.PENDING, SampleState.RUNNING
_KEEP = {
    SampleEvent.KEEP_OK: SampleState.OK,
    SampleEvent.KEEP_TRUNCATED: SampleState.TRUNCATED,
    SampleEvent.KEEP_EMPTY: SampleState.EMPTY,
    SampleEvent.KEEP_SUSPECT: SampleState.SUSPECT,
}

# (state, event) -> state. Recovery adopts a line that the ledger did not know of (killed between
# the line and the settle), and an earlier script's finished work is adopted by order, so a keep may
# also come from pending: cases res-05.
SAMPLE_MOVES: dict[tuple[SampleState, SampleEvent], SampleState] = {
    (_P, SampleEvent.CLAIM): _R,
    (_P, SampleEvent.REJECT): SampleState.REJECTED,
    (_R, SampleEvent.PUT_BACK): _P,
    (_R, SampleEvent.FAIL): SampleState.FAILED,
    (SampleState.TRUNCATED, SampleEvent.EXTEND): _P,
    **{(_R, event): state for event, state in _KEEP.items()},
    **{(_P, event): state for event, state in _KEEP.items()},
    **{(state, SampleEvent.RETRY): _P for state in sorted(RETRYABLE)},
    **{(state, SampleEvent.LOSE_LINE): _P for state in sorted(KEPT)},
    # a later turn of a conversation, once an earlier one is open again
    (SampleState.REJECTED, SampleEvent.WAIT_AGAIN): _P,
}

_STEPS = frozenset((source, target) for (source, _), target in SAMPLE_MOVES.items())

RUN_MOVES: dict[tuple[RunState, str], RunState] = {
    (RunState.RUNNING, "pause"): RunState.PAUSED,
    (RunState.PAUSED, "resume"): RunState.RUNNING,
    (RunState.RUNNING, "stop"): RunState.STOPPING,
    (RunState.PAUSED, "stop"): RunState.STOPPING,
    (RunState.STOPPING, "workers gone"): RunState.STOPPED,
    (RunState.STOPPING, "resume"): RunState.RUNNING,
    (RunState.STOPPED, "resume"): RunState.RUNNING,
    (RunState.RUNNING, "nothing left"): RunState.FINISHED,
    (RunState.FINISHED, "resume"): RunState.RUNNING,
}

PARTITION_MOVES: dict[tuple[PartitionState, str], PartitionState] = {
    (PartitionState.ACTIVE, "pause"): PartitionState.PAUSED,
    (PartitionState.DRAINING, "pause"): PartitionState.PAUSED,
    (PartitionState.ACTIVE, "drain"): PartitionState.DRAINING,
    (PartitionState.DRAINING, "drained"): PartitionState.PAUSED,
    (PartitionState.PAUSED, "resume"): PartitionState.ACTIVE,
    (PartitionState.DRAINING, "resume"): PartitionState.ACTIVE,
}


def may_move(source: SampleState, target: SampleState) -> bool:
    """Return whether any event of the table leads from the one state to the other.

    >>> may_move(SampleState.RUNNING, SampleState.OK), may_move(SampleState.OK, SampleState.FAILED)
    (True, False)
    """
    return (source, target) in _STEPS


def sample_diagram() -> str:
    """Return the picture of the table as Mermaid text; the README's is compared with it."""
    lines = ["stateDiagram-v2", "    [*] --> pending: intake"]
    lines += [
        f"    {state} --> {target}: {event}"
        for (state, event), target in SAMPLE_MOVES.items()
        if not (state is _P and event in _KEEP)
    ]
    return "\n".join(lines)
