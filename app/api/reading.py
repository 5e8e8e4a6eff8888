"""GET routes: what is, changing nothing. Plain functions, so that the ledger is read in threads."""

import json
from typing import Any

from fastapi import APIRouter, Query

from app.api.door import ServiceDoor
from app.clock import iso
from app.controls import find_run
from app.core.views import RunView, ServerView
from app.figures import to_json
from app.ledger import activity, runs, servers
from app.ledger.db import Ledger

Json = dict[str, Any]


def reading_routes(ledger: Ledger, service: ServiceDoor) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["look"])

    @router.get("/runs")
    def list_runs() -> Json:
        """Return all runs, newest first."""
        return {"runs": [run_to_json(run) for run in runs.list_runs(ledger)]}

    @router.get("/runs/{run}")
    def one_run(run: str) -> Json:
        """Return a run's figures, its partitions included. `run` is a number or a name."""
        return to_json(service.figures(find_run(ledger, run).id))

    @router.get("/runs/{run}/partitions")
    def partitions(run: str) -> Json:
        """Return the figures of a run's partitions."""
        return {"partitions": to_json(service.figures(find_run(ledger, run).id))["partitions"]}

    @router.get("/runs/{run}/activity")
    def entries(run: str, limit: int = Query(50, ge=1, le=1_000)) -> Json:
        """Return who did what when, newest first."""
        found = find_run(ledger, run)
        names = {each.id: each.name for each in runs.partitions_of(ledger, found.id)}
        listed = activity.latest(ledger, found.id, limit)
        return {
            "activity": [
                {
                    "id": entry.id,
                    "at": iso(entry.at),
                    "who": entry.who,
                    "event": entry.event,
                    "detail": entry.detail,
                    "partition": None
                    if entry.partition_id is None
                    else names.get(entry.partition_id),
                }
                for entry in listed
            ]
        }

    @router.get("/servers")
    def all_servers() -> Json:
        """Return the inference servers that runs have used, and what each said of itself."""
        return {"servers": [_server(view) for view in servers.servers(ledger)]}

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


def _server(view: ServerView) -> Json:
    return {
        "id": view.id,
        "url": view.url,
        "facts": json.loads(view.facts_json),
        "checked_at": None if view.checked_at is None else iso(view.checked_at),
        "last_good_at": None if view.last_good_at is None else iso(view.last_good_at),
    }
