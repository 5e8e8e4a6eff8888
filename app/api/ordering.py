"""POST routes: what people want. Each writes to the ledger, then pokes the supervisor."""

import json
from collections.abc import Awaitable, Callable, Mapping

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from app.api.carry_out import carry_out
from app.api.door import ServiceDoor
from app.api.schemas import (
    BudgetOrder,
    ConcurrencyOrder,
    DrainOrder,
    GoalOrder,
    OrderAnswer,
    PauseOrder,
    ResumeOrder,
    RetryOrder,
    RunOrder,
    StopOrder,
    Submission,
    SubmissionAnswer,
)
from app.clock import Clock
from app.controls import find_run
from app.core.spec import from_json
from app.errors import InputError
from app.ledger.db import Ledger

CLI_AGENT = "longwatch-cli"
VERBS: Mapping[str, type[RunOrder]] = {
    "pause": PauseOrder,
    "drain": DrainOrder,
    "resume": ResumeOrder,
    "stop": StopOrder,
    "retry": RetryOrder,
    "budget": BudgetOrder,
    "concurrency": ConcurrencyOrder,
    "goal": GoalOrder,
}
Carry = Callable[[str, RunOrder, Request], Awaitable[OrderAnswer]]


def ordering_routes(ledger: Ledger, service: ServiceDoor, clock: Clock) -> APIRouter:
    router = APIRouter(prefix="/api/v1", tags=["change"])

    async def carried_out(run: str, order: RunOrder, request: Request) -> OrderAnswer:
        def at_once() -> OrderAnswer:
            found = find_run(ledger, run)
            return carry_out(ledger, found, order, who=_who(request), now=clock.now())

        answer = await run_in_threadpool(at_once)
        service.poke()
        return answer

    @router.post("/runs", status_code=201)
    async def submit(body: Submission, request: Request) -> SubmissionAnswer:
        """Check a spec and start it, or go on with the run of that name."""
        try:
            spec = from_json(json.dumps(body.spec))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"the spec is not in the form of this version: {type(error).__name__} {error}",
                hint="use a longwatch of the version of the service",
            ) from error
        messages: list[str] = []
        run = await service.submit(
            spec, accept_changes=body.accept_changes, who=_who(request), say=messages.append
        )
        return SubmissionAnswer(id=run.id, name=run.name, state=run.state, messages=tuple(messages))

    for verb, kind in VERBS.items():
        router.add_api_route(
            f"/runs/{{run}}/{verb}",
            _endpoint(kind, carried_out),
            methods=["POST"],
            name=verb,
            description=kind.__doc__,
        )
    return router


def _endpoint(kind: type[RunOrder], carried_out: Carry) -> Carry:
    """Return a route of its own, with its own body, so that OpenAPI describes each order."""

    async def endpoint(run: str, body: RunOrder, request: Request) -> OrderAnswer:
        return await carried_out(run, body, request)

    endpoint.__annotations__["body"] = kind
    return endpoint


def _who(request: Request) -> str:
    agent = request.headers.get("user-agent", "")
    return "operator (command line)" if agent.startswith(CLI_AGENT) else "operator (API)"
