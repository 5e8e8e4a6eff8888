"""`GET /metrics`: the figures of live runs and of their servers, for Prometheus.

Owns the names, units and labels. Everything is read anew for each scrape; nothing is kept between
two. Invariant: what is not known is absent, never 0. Behind the same gate as the API.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from app.api.door import ServiceDoor
from app.api.exposition_forms import PARTITION, counter, gauge
from app.api.exposition_measures import Labelled, measured, of_measures
from app.controls import LIVE
from app.core.conditions import PARTITION_KINDS, ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.loads import LoadSource, ServerLoad
from app.figures import PartitionFigures, RunFigures
from app.ledger import runs
from app.ledger.db import Ledger

_SERVER = ("server",)


def exposition_routes(ledger: Ledger, service: ServiceDoor) -> APIRouter:
    router = APIRouter(tags=["look"])

    @router.get("/metrics", response_class=PlainTextResponse, summary="Figures for Prometheus")
    def metrics(request: Request) -> Response:
        """Return the figures of live runs and of their servers, in the exposition format."""
        live = [run.id for run in runs.list_runs(ledger) if run.state in LIVE]
        figures = [service.figures(run_id) for run_id in live]
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        collectors = CollectorRegistry()
        collectors.register(_Figures(figures, service.loads(), measured(ledger, figures)))
        return Response(encode(collectors), headers={"content-type": kind})

    return router


class _Figures(Collector):
    """What one scrape shows."""

    def __init__(
        self,
        figures: Iterable[RunFigures],
        loads: Mapping[str, ServerLoad],
        measured: Sequence[Labelled],
    ) -> None:
        self._figures = tuple(figures)
        self._loads = loads
        self._measured = measured

    def describe(self) -> Iterable[Metric]:
        """Name nothing beforehand: registering would read it all a first time."""
        return ()

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily(
            "longwatch_build_info", "The version of the service.", labels=("version",)
        )
        build.add_metric((_version(),), 1)
        yield build
        yield from _of_runs(self._figures)
        yield from _of_partitions(self._figures)
        yield from of_measures(self._measured)
        yield from _of_servers(list(self._loads.values()))


def _of_runs(figures: tuple[RunFigures, ...]) -> Iterator[Metric]:
    yield gauge(
        "longwatch_run_state",
        "1 for the state that a live run is in.",
        ("run", "state"),
        [((each.name, str(each.state)), 1) for each in figures],
    )
    yield gauge(
        "longwatch_run_progress_ratio",
        "Progress of a run, 0 to 1, rounded down to a hundredth.",
        ("run",),
        [((each.name,), each.percent / 100) for each in figures],
    )
    yield gauge(
        "longwatch_run_time_left_seconds",
        "Estimate of the time that a run needs still; absent while it is not known.",
        ("run", "estimate"),
        [((each.name, name), n) for each in figures for name, n in _left(each.time_left)],
    )
    yield gauge(
        "longwatch_condition_active",
        "1 while a condition of a run, or of any of its partitions, holds, else 0.",
        ("run", "kind"),
        [((each.name, kind.value), n) for each in figures for kind, n in _conditions(each)],
    )
    yield gauge(
        "longwatch_partition_condition_active",
        "1 while a condition of a partition holds, else 0.",
        (*PARTITION, "kind"),
        [
            ((run.name, one.name, kind.value), n)
            for run in figures
            for one in run.partitions
            for kind, n in _partition_conditions(run, one)
        ],
    )


def _left(left: Estimate | Unknown) -> list[tuple[str, float]]:
    if isinstance(left, Unknown):
        return []
    return [("low", left.low_s), ("middle", left.mid_s), ("high", left.high_s)]


def _conditions(figures: RunFigures) -> list[tuple[ConditionKind, int]]:
    active = {one.kind for one in figures.conditions}
    return [(kind, int(kind in active)) for kind in ConditionKind]


def _partition_conditions(
    run: RunFigures, partition: PartitionFigures
) -> list[tuple[ConditionKind, int]]:
    active = {one.kind for one in run.conditions if one.partition == partition.name}
    return [(kind, int(kind in active)) for kind in PARTITION_KINDS]


def _of_partitions(figures: tuple[RunFigures, ...]) -> Iterator[Metric]:
    each = [((run.name, one.name), one) for run in figures for one in run.partitions]
    yield gauge(
        "longwatch_samples",
        "Samples by state; the states sum to all samples.",
        (*PARTITION, "state"),
        [((*of, state), n) for of, one in each for state, n in asdict(one.counts).items()],
    )
    yield counter(
        "longwatch_received_tokens",
        "Output tokens received; always those kept, wasted and held.",
        [(of, one.tokens.received) for of, one in each],
    )
    yield counter(
        "longwatch_wasted_tokens",
        "Output tokens of answers that were started over, failed or replaced.",
        [(of, one.tokens.wasted) for of, one in each],
    )
    yield gauge(
        "longwatch_tokens",
        "Output tokens now: kept in answers, held of unfinished ones, reserved for running ones.",
        (*PARTITION, "kind"),
        [((*of, kind), n) for of, one in each for kind, n in _token_kinds(one)],
    )
    yield gauge(
        "longwatch_token_budget_tokens",
        "Output tokens that a partition may use; absent without a budget.",
        PARTITION,
        [(of, one.token_budget_tokens) for of, one in each],
    )
    yield gauge(
        "longwatch_in_flight_requests",
        "Requests in flight.",
        PARTITION,
        [(of, one.n_in_flight) for of, one in each],
    )
    yield gauge(
        "longwatch_concurrency_requests",
        "Requests that may be in flight; absent without a worker.",
        PARTITION,
        [(of, one.concurrency_requests) for of, one in each],
    )
    yield gauge(
        "longwatch_speed_tokens_per_second",
        "Output tokens per second, received lately; absent while nothing measures.",
        PARTITION,
        [(of, one.speed_tokens_per_s) for of, one in each],
    )
    yield gauge(
        "longwatch_time_left_seconds",
        "Estimate of the time that a partition needs still; absent while it is not known.",
        (*PARTITION, "estimate"),
        [((*of, name), n) for of, one in each for name, n in _left(one.time_left)],
    )


def _token_kinds(one: PartitionFigures) -> list[tuple[str, int]]:
    return [
        ("kept", one.tokens.kept),
        ("held", one.tokens.held),
        ("reserved", one.reserved_tokens),
    ]


def _of_servers(loads: list[ServerLoad]) -> Iterator[Metric]:
    yield gauge(
        "longwatch_server_up",
        "1 if the server answered when it was last asked; absent before it was.",
        _SERVER,
        [((each.url,), _is_up(each)) for each in loads],
    )
    known = [each for each in loads if each.away_since is None]
    for name, about, values in (
        ("running_requests", "Requests that the server runs.", [x.running_requests for x in known]),
        (
            "waiting_requests",
            "Requests in the server's queue.",
            [x.waiting_requests for x in known],
        ),
        (
            "speed_tokens_per_second",
            "Tokens per second, as the server counts.",
            [x.tokens_per_s for x in known],
        ),
    ):
        rows = [((each.url,), n) for each, n in zip(known, values, strict=True)]
        yield gauge(f"longwatch_server_{name}", about, _SERVER, rows)
    yield gauge(
        "longwatch_server_kv_tokens",
        "Tokens in the server's KV pool, by what they are.",
        (*_SERVER, "kind"),
        [((each.url, kind), n) for each in known for kind, n in _kv(each)],
    )


def _is_up(load: ServerLoad) -> int | None:
    if load.away_since is not None:
        return 0
    return 1 if load.source is not LoadSource.NONE or load.at is not None else None


def _kv(load: ServerLoad) -> list[tuple[str, int | None]]:
    return [
        ("capacity", load.kv_capacity_tokens),
        ("used", load.kv_used_tokens),
        ("reclaimable", load.kv_reclaimable_tokens),
        ("free", load.kv_free_tokens),
    ]


def _version() -> str:
    try:
        return version("longwatch")
    except PackageNotFoundError:
        return "unknown"
