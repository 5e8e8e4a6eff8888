"""POST routes: what people want. Each writes to the ledger, then pokes the supervisor."""

from collections.abc import Awaitable, Callable, Mapping

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from app.api.carry_out import carry_out, carry_out_extend
from app.api.door import ServiceDoor
from app.api.schemas import (
    Addition,
    AdditionAnswer,
    BudgetOrder,
    ConcurrencyOrder,
    DeadlineOrder,
    DrainOrder,
    ExtendOrder,
    GoalOrder,
    OrderAnswer,
    PauseOrder,
    RestartOrder,
    ResumeOrder,
    RetryOrder,
    RunOrder,
    StopOrder,
    Submission,
    SubmissionAnswer,
)
from app.api.sending import PartitionWord, RunWord
from app.api.spec_body import spec_of
from app.clock import Clock
from app.controls import find_run
from app.ledger.db import Ledger

VERBS: Mapping[str, type[RunOrder]] = {
    "pause": PauseOrder,
    "drain": DrainOrder,
    "restart": RestartOrder,
    "resume": ResumeOrder,
    "stop": StopOrder,
    "retry": RetryOrder,
    "budget": BudgetOrder,
    "concurrency": ConcurrencyOrder,
    "goal": GoalOrder,
    "deadline": DeadlineOrder,
}
SUMMARIES: Mapping[str, str] = {
    "pause": "Stop sending and put back what runs",
    "drain": "Send nothing new and let what runs end",
    "restart": "Take back what is in flight and send it anew",
    "resume": "Go on after pause, drain or stop",
    "stop": "End the run, keeping what was made",
    "retry": "Try samples again",
    "budget": "Set a budget in output tokens",
    "concurrency": "Set how many requests run at once",
    "goal": "Set how many answers are wanted",
    "deadline": "Set when to stop, ending cleanly",
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

    @router.post("/runs", status_code=201, summary="Start a run, or go on with it")
    async def submit(body: Submission, request: Request) -> SubmissionAnswer:
        """Check a spec and start it, or go on with the run of that name."""
        spec = spec_of(body.spec)
        messages: list[str] = []
        run = await service.submit(
            spec, accept_changes=body.accept_changes, who=_who(request), say=messages.append
        )
        return SubmissionAnswer(id=run.id, name=run.name, state=run.state, messages=tuple(messages))

    @router.post("/runs/{run}/partitions", summary="Add partitions to a run")
    async def add(run: RunWord, body: Addition, request: Request) -> AdditionAnswer:
        """Add the partitions of a spec that the run does not have yet; a finished run goes on.

        Refused where the spec would make answers otherwise than the run does.
        """
        found = await run_in_threadpool(find_run, ledger, run)
        messages: list[str] = []
        added = await service.add(
            found.id, spec_of(body.spec), who=_who(request), say=messages.append
        )
        return AdditionAnswer(
            run=added.run.id,
            name=added.run.name,
            state=added.run.state,
            added=added.names,
            messages=tuple(messages),
        )

    @router.post("/runs/{run}/partitions/{partition}/extend", summary="Extend truncated answers")
    async def extend(
        run: RunWord, partition: PartitionWord, body: ExtendOrder, request: Request
    ) -> OrderAnswer:
        def at_once() -> OrderAnswer:
            found = find_run(ledger, run)
            who, now = _who(request), clock.now()
            return carry_out_extend(ledger, found, partition, body, who=who, now=now)

        answer = await run_in_threadpool(at_once)
        service.poke()
        return answer

    extend.__doc__ = ExtendOrder.__doc__
    for verb, kind in VERBS.items():
        router.add_api_route(
            f"/runs/{{run}}/{verb}",
            _endpoint(kind, carried_out),
            methods=["POST"],
            name=verb,
            summary=SUMMARIES[verb],
            description=kind.__doc__,
        )
    return router


def _endpoint(kind: type[RunOrder], carried_out: Carry) -> Carry:
    """Return a route of its own, with its own body, so that OpenAPI describes each order."""

    async def endpoint(run: RunWord, body: RunOrder, request: Request) -> OrderAnswer:
        return await carried_out(run, body, request)

    endpoint.__annotations__["body"] = kind
    return endpoint


def _who(request: Request) -> str:
    """Return the name that the gate knows the request by."""
    who: str = request.state.who
    return who
