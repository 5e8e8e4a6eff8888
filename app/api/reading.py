"""GET routes: what is, changing nothing. Plain functions, so that the ledger is read in threads.

Owns the routes of runs, partitions and activity; brings in those of samples, measures, servers.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.door import ServiceDoor
from app.api.forecasting import forecast_routes
from app.api.looking_at_measures import measure_routes
from app.api.looking_at_samples import sample_routes
from app.api.looking_at_servers import server_routes
from app.api.report_form import ReportAnswer, report_to_json
from app.api.schemas_reading import (
    ActivityAnswer,
    PartitionsAnswer,
    RunAnswer,
    RunsAnswer,
)
from app.api.sending import Json, RunWord, as_json
from app.clock import iso
from app.controls import find_run
from app.core.types import PartitionId
from app.core.views import RunView
from app.figures import to_json
from app.ledger import activity, runs
from app.ledger.activity import Activity
from app.ledger.db import Ledger
from app.recorder.hindsight import look_back

PREFIX = "/api/v1"
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many entries at most.")]


def reading_routes(ledger: Ledger, service: ServiceDoor) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["look"])

    @router.get("/runs", response_model=RunsAnswer, summary="All runs")
    def list_runs() -> Response:
        """Return all runs, newest first."""
        return as_json({"runs": [run_to_json(run) for run in runs.list_runs(ledger)]})

    @router.get("/runs/{run}", response_model=RunAnswer, summary="The figures of a run")
    def one_run(run: RunWord) -> Response:
        """Return a run's figures, its partitions included. `run` is a number or a name."""
        return as_json(to_json(service.figures(find_run(ledger, run).id)))

    @router.get(
        "/runs/{run}/partitions",
        response_model=PartitionsAnswer,
        summary="The figures of a run's partitions",
    )
    def partitions(run: RunWord) -> Response:
        """Return the figures of a run's partitions."""
        figures = to_json(service.figures(find_run(ledger, run).id))
        return as_json({"partitions": figures["partitions"]})

    @router.get("/runs/{run}/activity", response_model=ActivityAnswer, summary="Who did what when")
    def entries(run: RunWord, limit: Limit = 50) -> Response:
        """Return who did what when, newest first."""
        found = find_run(ledger, run)
        names = {each.id: each.name for each in runs.partitions_of(ledger, found.id)}
        listed = activity.latest(ledger, found.id, limit)
        return as_json({"activity": [_entry(each, names) for each in listed]})

    @router.get("/runs/{run}/report", response_model=ReportAnswer, summary="How a run went")
    def report(run: RunWord) -> Response:
        """Return times, tokens, conditions, and how wrong each shown end turned out to be."""
        return as_json(report_to_json(look_back(ledger, find_run(ledger, run))))

    router.include_router(sample_routes(ledger))
    router.include_router(measure_routes(ledger))
    router.include_router(server_routes(ledger, service))
    router.include_router(forecast_routes(ledger, service))
    return router


def run_to_json(run: RunView) -> Json:
    return {
        "id": run.id,
        "name": run.name,
        "state": str(run.state),
        "state_since": iso(run.state_since),
        "reason": run.reason,
        "output_dir": run.output_dir,
        "token_budget_tokens": run.token_budget,
        "created_at": iso(run.created_at),
    }


def _entry(entry: Activity, names: dict[PartitionId, str]) -> Json:
    partition_id = entry.partition_id
    return {
        "id": entry.id,
        "at": iso(entry.at),
        "who": entry.who,
        "event": entry.event,
        "detail": entry.detail,
        "partition": None if partition_id is None else names.get(partition_id),
    }
