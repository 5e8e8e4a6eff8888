"""POST of a retry of one sample. It cannot be taken back, and the answer says so."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from app.api.sending import RowId
from app.controls import find_run
from app.core.types import SampleId
from app.retrying import Retried, retry_one
from app.web.actions import answer
from app.web.kinds import Desk


def sample_forms(desk: Desk) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/runs/{run}/samples/{sample}/retry")
    async def retry(run: str, sample: RowId, request: Request) -> Response:
        found = await run_in_threadpool(find_run, desk.ledger, run)

        def at_once() -> Retried:
            who, now = request.state.who, desk.clock.now()
            return retry_one(desk.ledger, found, SampleId(sample), who=who, now=now)

        done = await run_in_threadpool(at_once)
        desk.service.poke()
        if request.headers.get("hx-request") == "true":
            said = "The sample is pending again. This cannot be taken back."
            if done.spent:
                said += f" The token budget of {done.spent[0]} is used up: raise it to send it."
            return answer(request, found, said, None)
        return RedirectResponse(f"/runs/{found.id}/samples/{sample}", 303)

    return router
