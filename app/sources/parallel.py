"""Work in processes of its own, one for each source, so many at a time; each tells its progress.

Owns starting and ending the processes and what a death means. Invariants: the death of one process
is an error of its own source alone; when `run_each` returns or raises, none of its processes lives;
a process whose parent has gone ends by itself, since nobody hears it any more.

A pool would not do: where one of its processes dies, all that it was given is lost.
"""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Generic, NamedTuple, TypeVar

from app.core.format import signal_name
from app.errors import LongwatchError

_SHOW_EVERY_S = 0.5
_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_SPAWN = get_context("spawn")

T = TypeVar("T")
Progress = Callable[[int, int], None]  # rows, bytes
Work = Callable[[Progress], T]  # a picklable one: a partial of a function of a module


class State(StrEnum):
    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(slots=True)
class Step:
    """How far one source is. `n_bytes` 0: nobody knows how much there is."""

    name: str
    n_bytes: int
    n_rows: int = 0
    done_bytes: int = 0
    state: State = State.WAITING


class _Told(NamedTuple):
    n_rows: int
    done_bytes: int


class _Running(NamedTuple):
    step: Step
    process: SpawnProcess


class _Crew(Generic[T]):
    """The processes that work now, and what the ended ones have said."""

    def __init__(self) -> None:
        self.running: dict[Connection[object, object], _Running] = {}
        self.said: dict[str, T | LongwatchError] = {}

    def start(self, step: Step, work: Work[T]) -> None:
        ours, its = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_work, args=(work, its), name=f"prepare {step.name}")
        # Ctrl-C reaches the whole group, also one that is still loading and would print a traceback
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
            self.running[ours] = _Running(step, process)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        its.close()
        step.state = State.WORKING

    def hear(self, connection: "Connection[object, object]") -> None:
        """Take what a process says; silence for good is its death."""
        step, process = self.running[connection]
        try:
            said = connection.recv()
        except (EOFError, OSError):
            process.join()
            said = _died(step, process.exitcode)
        if isinstance(said, _Told):
            step.n_rows, step.done_bytes = said
            return
        self._end(connection)
        step.state = State.FAILED if isinstance(said, LongwatchError) else State.READY
        self.said[step.name] = said  # type: ignore[assignment]  # `_work` sends nothing else

    def end_all(self) -> None:
        for connection, (_, process) in list(self.running.items()):
            process.terminate()
            self._end(connection)

    def _end(self, connection: "Connection[object, object]") -> None:
        connection.close()
        process = self.running.pop(connection).process
        process.join()
        process.close()


def run_each(
    works: Mapping[str, tuple[Work[T], int]],
    n_processes: int,
    show: Callable[[Sequence[Step]], None],
) -> dict[str, T | LongwatchError]:
    """Do each work in a process of its own; return what each gave, or why it gave nothing.

    `works` has the bytes beside each, for the progress. `show` is called about twice a second.
    """
    steps = [Step(name, n_bytes) for name, (_, n_bytes) in works.items()]
    waiting = list(reversed(steps))
    crew = _Crew[T]()
    try:
        while waiting or crew.running:
            while waiting and len(crew.running) < n_processes:
                step = waiting.pop()
                crew.start(step, works[step.name][0])
            show(steps)
            for connection in wait(list(crew.running), _SHOW_EVERY_S):
                crew.hear(connection)  # type: ignore[arg-type]  # connections are all that was given
        show(steps)
    finally:
        crew.end_all()
    return crew.said


def _work(work: Work[object], connection: "Connection[object, object]") -> None:
    """Do one work; what runs in the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def tell(said: object) -> None:
        try:
            connection.send(said)
        except OSError:
            sys.exit(1)  # the parent has gone

    said: object
    try:
        said = work(lambda n_rows, done_bytes: tell(_Told(n_rows, done_bytes)))
    except LongwatchError as error:
        said = error
    except Exception as error:
        told = f"internal error, {type(error).__name__}: {error}"
        said = LongwatchError(told, hint="report it")
    tell(said)


def _died(step: Step, exit_code: int | None) -> LongwatchError:
    if exit_code is not None and exit_code < 0:
        how = f"was ended by {signal_name(-exit_code)}"
    else:
        how = f"ended with exit code {exit_code}"
    return LongwatchError(
        f"the process of source {step.name} {how} after {step.n_rows:,} rows",
        hint="nothing of this source was written; look at the memory and prepare again",
    )
