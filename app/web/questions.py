"""GET: small questions that a page asks: what a limit would mean, what came of a pause.

Answered in plain words from the figures of the last look. Nothing is changed. Each question is one
read of what the service knows already; only what came of a pause waits for it, some seconds.
"""

from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from markupsafe import escape
from starlette.concurrency import run_in_threadpool

from app.api import ServiceDoor
from app.api.sending import RowId
from app.clock import Clock
from app.controls import find_run
from app.core.format import plural
from app.core.states import PartitionState, RunState
from app.core.views import RunView
from app.errors import InputError, LedgerError
from app.figures import PartitionFigures, RunFigures
from app.ledger.db import Ledger
from app.ledger.progress import n_half_written
from app.web.forms import named
from app.web.meanings import Figures, would_mean
from app.web.typed_limits import in_full, typed_limit

KINDS = ("budget", "goal", "deadline")
_PATIENCE_S, _LOOK_EVERY_S = 3.0, 0.1


def question_routes(ledger: Ledger, service: ServiceDoor, clock: Clock) -> APIRouter:
    """Return the routes; they come before those that take any name."""
    router = APIRouter(include_in_schema=False, default_response_class=PlainTextResponse)
    _add_meanings(router, ledger, service)
    _add_pauses(router, ledger, _Pauses(ledger, service, clock))
    return router


def _add_meanings(router: APIRouter, ledger: Ledger, service: ServiceDoor) -> None:
    def mean(run: RunView, partition_id: int | None, request: Request) -> PlainTextResponse:
        kind = next((each for each in KINDS if each in request.query_params), None)
        if kind is None:
            raise InputError("nothing is asked", hint=f"ask for one of {', '.join(KINDS)}")
        figures = service.figures(run.id)
        asked = _of(figures, partition_id)
        present = asked.token_budget_tokens
        if kind == "goal":
            present = asked.goal_samples if isinstance(asked, PartitionFigures) else None
        typed = in_full(kind, typed_limit(kind, request.query_params[kind].strip()), present)
        return PlainTextResponse(would_mean(kind, typed, asked, figures.at))

    @router.get("/runs/{run}/meaning")
    def of_run(run: str, request: Request) -> PlainTextResponse:
        return mean(find_run(ledger, run), None, request)

    @router.get("/runs/{run}/p/{partition_id}/meaning")
    def of_partition(run: str, partition_id: RowId, request: Request) -> PlainTextResponse:
        found, _ = named(ledger, run, partition_id)
        return mean(found, partition_id, request)


def _add_pauses(router: APIRouter, ledger: Ledger, pauses: "_Pauses") -> None:
    @router.get("/runs/{run}/paused")
    async def of_run(run: str) -> PlainTextResponse:
        found = await run_in_threadpool(find_run, ledger, run)
        return await pauses.told(found, found.name, None)

    @router.get("/runs/{run}/p/{partition_id}/paused")
    async def of_partition(run: str, partition_id: RowId) -> PlainTextResponse:
        found, name = await run_in_threadpool(named, ledger, run, partition_id)
        return await pauses.told(found, name, partition_id)


class _Pauses:
    """Waits for what came of a pause. What is told stands in markup: it is escaped here."""

    def __init__(self, ledger: Ledger, service: ServiceDoor, clock: Clock) -> None:
        self._ledger, self._service, self._clock = ledger, service, clock

    async def told(self, run: RunView, name: str, partition_id: int | None) -> PlainTextResponse:
        since, since_s = self._clock.now(), self._clock.monotonic()
        while self._clock.monotonic() - since_s < _PATIENCE_S:
            said = await run_in_threadpool(self._rested, run, partition_id, since)
            if said:
                return PlainTextResponse(str(escape(f"{name} {said}")))
            await self._clock.sleep(_LOOK_EVERY_S)
        waited = f"{name}: asked {_PATIENCE_S:.0f} s ago, the runner has not answered"
        return PlainTextResponse(str(escape(waited)))

    def _rested(self, run: RunView, partition_id: int | None, since: datetime) -> str:
        try:
            figures = self._service.figures(run.id)
            if figures.at < since:
                return ""  # the look before knows nothing of the order
            return _rested(self._ledger, figures, partition_id)
        except LedgerError:
            return ""


def _of(run: RunFigures, partition_id: int | None) -> Figures:
    return next((each for each in run.partitions if each.id == partition_id), run)


def _rested(ledger: Ledger, run: RunFigures, partition_id: int | None) -> str:
    """Return what has become of a pause; "" while requests are in flight."""
    parts = [each for each in run.partitions if partition_id in (None, each.id)]
    if not _is_paused(run, parts if partition_id is not None else []):
        return "goes on again"
    if any(each.n_in_flight or each.counts.running for each in parts):
        return ""
    n = n_half_written(ledger, [each.id for each in parts])
    return f"paused; {plural(n, 'half-written answer')} saved" if n else "paused"


def _is_paused(run: RunFigures, parts: list[PartitionFigures]) -> bool:
    if parts and parts[0].state is PartitionState.PAUSED:
        return True
    return run.state is not RunState.RUNNING
