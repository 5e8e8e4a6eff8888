"""A run's figures as a snapshot row, and a row as what charts and means are made of.

Owns the keys of `figures_json`. A row holds the estimate that was shown, so that its error can be
measured afterwards. Invariant: a row that cannot be read (of another version, or by hand) is left
out, never an error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from app.clock import to_ms
from app.core.estimate import Estimate
from app.core.loads import ServerLoad
from app.core.series import Mark
from app.core.states import PartitionState, RunState
from app.core.types import PartitionId
from app.figures import PartitionFigures, RunFigures
from app.ledger.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What the history needs of a run at one moment. `session` is the service that saw it.

    `concurrency` is how many requests of a partition were wanted in flight, 0 where nothing was to
    be sent, without those of which it is not known. `is_away`: no server answered.
    `first_token_s` is the median of the last two minutes, of the slowest server.
    """

    at_s: float
    session: int
    received_tokens: int
    by_partition: Mapping[PartitionId, int]
    server_tokens_per_s: float | None = None
    best_tokens_per_s: float | None = None
    concurrency: Mapping[PartitionId, int] = field(default_factory=dict)
    is_away: bool = False
    first_token_s: float | None = None

    @property
    def mark(self) -> Mark:
        return Mark(self.at_s, self.received_tokens, self.session)

    def mark_of(self, partition_id: PartitionId) -> Mark | None:
        """Return the partition's part, None if it did not exist then."""
        received = self.by_partition.get(partition_id)
        return None if received is None else Mark(self.at_s, received, self.session)


def moment_of(figures: RunFigures, session: int) -> Moment:
    return Moment(
        at_s=figures.at.timestamp(),
        session=session,
        received_tokens=figures.tokens.received,
        by_partition={each.id: each.tokens.received for each in figures.partitions},
        server_tokens_per_s=_server_speed(figures.servers),
        best_tokens_per_s=figures.best_tokens_per_s,
        concurrency={
            each.id: wanted
            for each in figures.partitions
            if (wanted := _wanted(figures, each)) is not None
        },
        is_away=_is_away(figures.servers),
        first_token_s=_first_token(figures.servers),
    )


def row_of(figures: RunFigures, session: int) -> Snapshot:
    value = {
        "session": session,
        "state": str(figures.state),
        "samples": asdict(figures.counts),
        "tokens": asdict(figures.tokens),
        "in_flight": figures.n_in_flight,
        "speed": _rounded(figures.speed_tokens_per_s),
        "best": _rounded(figures.best_tokens_per_s),
        "left_s": _left(figures),
        "server_speed": _rounded(_server_speed(figures.servers)),
        "away": _is_away(figures.servers),
        "first_token": _rounded(_first_token(figures.servers)),
        "partitions": {str(each.id): _partition(figures, each) for each in figures.partitions},
        "servers": {load.url: _load(load) for load in figures.servers if load.at is not None},
    }
    return Snapshot(
        run_id=figures.run_id,
        at_ms=to_ms(figures.at),
        figures_json=orjson.dumps(value).decode(),
    )


def _partition(run: RunFigures, figures: PartitionFigures) -> list[object]:
    """Return tokens received, in flight, concurrency, speed, time left: low, middle, high."""
    return [
        figures.tokens.received,
        figures.n_in_flight,
        _wanted(run, figures),
        _rounded(figures.speed_tokens_per_s),
        _left(figures),
    ]


def _wanted(run: RunFigures, figures: PartitionFigures) -> int | None:
    """Return how many requests are wanted in flight now: none of a partition that is at rest."""
    is_sending = run.state is RunState.RUNNING and figures.state is PartitionState.ACTIVE
    return figures.concurrency_requests if is_sending and not figures.is_over else 0


def _is_away(loads: Sequence[ServerLoad]) -> bool:
    return bool(loads) and all(load.away_since is not None for load in loads)


def _first_token(loads: Sequence[ServerLoad]) -> float | None:
    told = [each.recent_first_token_s for each in loads if each.recent_first_token_s is not None]
    return max(told, default=None)


def _left(figures: RunFigures | PartitionFigures) -> list[int] | None:
    left = figures.time_left
    if not isinstance(left, Estimate):
        return None
    return [round(each) for each in (left.low_s, left.mid_s, left.high_s)]


def _load(load: ServerLoad) -> dict[str, object]:
    known = {
        "running": load.running_requests,
        "waiting": load.waiting_requests,
        "kv_used": load.kv_used_tokens,
        "kv_reclaimable": load.kv_reclaimable_tokens,
        "kv_free": load.kv_free_tokens,
        "used_ratio": load.used_ratio,
        "speed": _rounded(load.tokens_per_s),
        "retracted": load.retracted_requests,
    }
    return {name: value for name, value in known.items() if value is not None}


def _server_speed(loads: Iterable[ServerLoad]) -> float | None:
    told = [
        load.tokens_per_s
        for load in loads
        if load.tokens_per_s is not None and load.away_since is None
    ]
    return sum(told) if told else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a row says of the ends that were shown: low, middle, high in seconds; None: none was."""

    at_s: float
    session: int
    received_tokens: int
    best_tokens_per_s: float | None
    left_s: tuple[float, float, float] | None
    by_partition: Mapping[PartitionId, tuple[int, tuple[float, float, float] | None]]


def read_past(rows: Iterable[Snapshot]) -> Iterator[Past]:
    """Give what was shown in the rows that can be read."""
    for row in rows:
        moment = _read(row)
        if moment is None:
            continue
        value: dict[str, Any] = orjson.loads(row.figures_json)
        yield Past(
            at_s=moment.at_s,
            session=moment.session,
            received_tokens=moment.received_tokens,
            best_tokens_per_s=moment.best_tokens_per_s,
            left_s=_read_left(value.get("left_s")),
            by_partition={
                PartitionId(int(name)): (int(values[0]), _read_left(values[4:5]))
                for name, values in value["partitions"].items()
            },
        )


def _read_left(stored: object) -> tuple[float, float, float] | None:
    """Return a stored time left, None if there is none; of a partition, in a list of its own."""
    match stored:
        case [list() as inner]:
            return _read_left(inner)
        case [int() | float() as low, int() | float() as middle, int() | float() as high]:
            return (float(low), float(middle), float(high))
    return None


def read_rows(rows: Iterable[Snapshot]) -> list[Moment]:
    """Return the moments of rows that can be read."""
    return [moment for row in rows if (moment := _read(row)) is not None]


def _read(row: Snapshot) -> Moment | None:
    try:
        value: dict[str, Any] = orjson.loads(row.figures_json)
        return Moment(
            at_s=row.at_ms / 1000,
            session=int(value["session"]),
            received_tokens=int(value["tokens"]["received"]),
            by_partition={
                PartitionId(int(name)): int(values[0])
                for name, values in value["partitions"].items()
            },
            server_tokens_per_s=value.get("server_speed"),
            best_tokens_per_s=value.get("best"),
            concurrency={
                PartitionId(int(name)): int(values[2])
                for name, values in value["partitions"].items()
                if values[2:3] and values[2] is not None
            },
            is_away=bool(value.get("away")),
            first_token_s=value.get("first_token"),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
