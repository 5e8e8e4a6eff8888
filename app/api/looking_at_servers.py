"""GET routes of inference servers and of a run's speeds over time.

Owns which servers are listed and in what order; the form of a load is that of the figures.
Invariant: what a server does not tell is null, with where the figures come from (`source`) and why
there are none (`trouble`) beside it.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.door import ServiceDoor
from app.api.schemas_reading import ChartAnswer, ServersAnswer
from app.api.sending import Json, RunWord, as_json
from app.clock import iso
from app.controls import find_run
from app.core.loads import ServerLoad
from app.core.series import Chart
from app.core.spec import from_json
from app.core.views import ServerView
from app.extending.refusing import named
from app.figures.load_form import load_to_json
from app.ledger import servers
from app.ledger.db import Ledger

NOT_WATCHED = "no live run uses it, so it is not asked"
_MOST_S = 3_650 * 86_400
Span = Annotated[
    float | None,
    Query(
        gt=0, le=_MOST_S, description="Seconds back from now; left out: since the run was created."
    ),
]
Named = Annotated[
    str | None, Query(max_length=200, description="The name of a partition of the run.")
]
Buckets = Annotated[int, Query(ge=1, le=1_000, description="How many equal pieces.")]


def server_routes(ledger: Ledger, service: ServiceDoor) -> APIRouter:
    router = APIRouter()

    @router.get("/servers", response_model=ServersAnswer, summary="All inference servers")
    def all_servers() -> Response:
        """Return the servers that runs have used: what each said of itself, and its load now."""
        views = servers.servers(ledger)
        urls = [view.url for view in views]
        return as_json({"servers": _servers(urls, views, service.loads())})

    @router.get("/runs/{run}/servers", response_model=ServersAnswer, summary="The servers of a run")
    def servers_of_run(run: RunWord) -> Response:
        """Return the servers that a run names, in its order, reached or not."""
        urls = from_json(find_run(ledger, run).spec_json).server_urls
        return as_json({"servers": _servers(urls, servers.servers(ledger), service.loads())})

    @router.get("/runs/{run}/chart", response_model=ChartAnswer, summary="Speeds over time")
    def chart(
        run: RunWord, span_s: Span = None, buckets: Buckets = 120, partition: Named = None
    ) -> Response:
        """Return speeds in equal pieces: of our own workers, and as the servers count.

        With `partition`, that one's alone; the servers' count is of the whole run only.
        """
        found = find_run(ledger, run)
        wanted = None if partition is None else named(ledger, found, partition).id
        return as_json(_chart(service.chart(found.id, span_s, buckets, wanted)))

    return router


def _servers(
    urls: Sequence[str], views: Sequence[ServerView], loads: Mapping[str, ServerLoad]
) -> list[Json]:
    by_url = {view.url: view for view in views}
    return [_server(url, by_url.get(url), loads.get(url)) for url in urls]


def _server(url: str, view: ServerView | None, load: ServerLoad | None) -> Json:
    return {
        "id": view and view.id,
        "url": url,
        "facts": {} if view is None else json.loads(view.facts_json),
        "checked_at": view and _moment(view.checked_at),
        "last_good_at": view and _moment(view.last_good_at),
        "load": load_to_json(load or ServerLoad(url=url, trouble=NOT_WATCHED)),
    }


def _chart(chart: Chart) -> Json:
    n = len(chart.own_tokens_per_s)
    return {
        "begin": iso(chart.begin),
        "end": iso(chart.end),
        "bucket_s": (chart.end - chart.begin).total_seconds() / n if n else None,
        "own_tokens_per_s": list(chart.own_tokens_per_s),
        "server_tokens_per_s": list(chart.server_tokens_per_s),
        "concurrency_requests": list(chart.concurrency_requests),
        "aways": [(iso(begin), iso(end)) for begin, end in chart.aways],
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
