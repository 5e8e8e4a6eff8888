"""What happens inside a worker and the service, as typed events; one subscriber logs them.

Tests listen to the same events instead of waiting for time. An event says that something has
happened; nobody is ordered by it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, fields

from app.core.types import PartitionId, RunId, SampleId, WorkerId

logger = logging.getLogger("longwatch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something happened. `level` is the logging level at which it is told."""

    def level(self) -> int:
        return logging.INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Event):
    worker_id: WorkerId
    partition: str
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLeft(Event):
    worker_id: WorkerId
    partition: str
    reason: str
    put_back: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Event):
    n: int
    n_continued: int

    def level(self) -> int:
        return logging.DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked(Event):
    """A tick was recorded: so many settled, so many tokens gained, so many in flight."""

    n_settled: int
    gained_tokens: int
    in_flight: int

    def level(self) -> int:
        return logging.DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed(Event):
    sample_id: SampleId
    key: str
    attempt: int
    reason: str

    def level(self) -> int:
        return logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLost(Event):
    url: str
    reason: str

    def level(self) -> int:
        return logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBack(Event):
    url: str
    away_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleDelayed(Event):
    """A tick could not be recorded now; what it holds is kept and tried again."""

    reason: str
    n_waiting: int

    def level(self) -> int:
        return logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Event):
    partition: str
    what: str

    def level(self) -> int:
        return logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSealed(Event):
    partition: str
    n_lines: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMoved(Event):
    run_id: RunId
    state: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeProgress(Event):
    partition_id: PartitionId
    n_samples: int
    n_rejected: int

    def level(self) -> int:
        return logging.DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTrouble(Event):
    """A step of the service could not be done now; it is tried again."""

    reason: str

    def level(self) -> int:
        return logging.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationTried(Event):
    """A message to somebody outside; `target` holds no secret."""

    target: str
    entry_id: int
    n_tries: int
    is_ok: bool
    said: str

    def level(self) -> int:
        return logging.INFO if self.is_ok else logging.WARNING


Observer = Callable[[Event], None]


def log_event(event: Event) -> None:
    """Write the event as `Name key=value …`; the one place where events become log lines."""
    parts = " ".join(f"{each.name}={getattr(event, each.name)!r}" for each in fields(event))
    logger.log(event.level(), "%s %s", type(event).__name__, parts)
