"""POST: what people press. Each order goes the way of the API's, into the ledger, then a poke.

Every form works without script: a plain post is answered with 303 back to the page, one of htmx
with a message that can be taken back. Orders say the wanted state (pause, not toggle), so the same
one twice is no harm.
"""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from app.api import ServiceDoor, carry_out
from app.api.carry_out import carry_out_extend
from app.api.schemas import (
    MAX_REASON,
    DrainOrder,
    ExtendOrder,
    OrderAnswer,
    PauseOrder,
    RestartOrder,
    ResumeOrder,
    RunOrder,
    StopOrder,
)
from app.api.sending import RowId
from app.clock import Clock
from app.controls import find_run
from app.core.spec_parse import MAX_NEW_TOKENS
from app.core.views import RunView
from app.errors import InputError, NotFoundError
from app.ledger.db import Ledger
from app.web.answers import Undo, answer
from app.web.concurrency_forms import add_concurrency, step_of
from app.web.forms import Form, named

__all__ = ["Form", "Undo", "action_routes", "answer", "named", "step_of"]

_UNDO_OF = {"pause": "resume", "resume": "pause", "drain": "resume", "stop": "resume"}
_SAID = {
    "pause": "is pausing",
    "resume": "resumed",
    "drain": "drains: what runs is finished first",
    "stop": "is stopping; nothing is lost",
    "restart": "takes its requests back, saves them and sends them anew",
}


def action_routes(ledger: Ledger, service: ServiceDoor, clock: Clock) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    async def carried_out(found: RunView, order: RunOrder, request: Request) -> OrderAnswer:
        def at_once() -> OrderAnswer:
            who = request.state.who
            return carry_out(ledger, found, order, who=who, now=clock.now())

        done = await run_in_threadpool(at_once)
        service.poke()
        return done

    @router.post("/runs/{run}/{verb}")
    async def of_run(run: str, verb: str, request: Request) -> Response:
        form = Form(await request.body())
        found = await run_in_threadpool(find_run, ledger, run)
        order = _run_order(verb, form)
        await carried_out(found, order, request)
        at = f"/runs/{found.id}"
        # an arrangement of pauses that was given up as a whole is not known any more
        is_lost = isinstance(order, ResumeOrder) and order.also_paused
        undo = None if is_lost else Undo(address=f"{at}/{_UNDO_OF[verb]}")
        ask = f"{at}/paused" if verb == "pause" else ""
        return answer(request, found, f"{found.name} {_SAID[verb]}", undo, ask=ask)

    add_concurrency(router, ledger, service, carried_out)
    _extending(router, ledger, service, clock)

    @router.post("/runs/{run}/p/{partition_id}/{verb}")
    async def of_partition(run: str, partition_id: RowId, verb: str, request: Request) -> Response:
        found, name = await run_in_threadpool(named, ledger, run, partition_id)
        await carried_out(found, _partition_order(verb, name), request)
        at = f"/runs/{found.id}/p/{partition_id}"
        undo = Undo(address=f"{at}/{_UNDO_OF[verb]}") if verb in _UNDO_OF else None
        ask = f"{at}/paused" if verb == "pause" else ""
        return answer(request, found, f"{name} {_SAID[verb]}", undo, ask=ask)

    return router


def _extending(router: APIRouter, ledger: Ledger, service: ServiceDoor, clock: Clock) -> None:
    """Add the form that lets truncated answers go on; before the one that takes any verb."""

    @router.post("/runs/{run}/p/{partition_id}/extend")
    async def extend(run: str, partition_id: RowId, request: Request) -> Response:
        order = _longer(Form(await request.body()))
        found, name = await run_in_threadpool(named, ledger, run, partition_id)

        def at_once() -> OrderAnswer:
            who = request.state.who
            return carry_out_extend(ledger, found, name, order, who=who, now=clock.now())

        done = await run_in_threadpool(at_once)
        service.poke()
        return answer(request, found, done.sentence, None)


def _run_order(verb: str, form: Form) -> RunOrder:
    if verb == "pause":
        return PauseOrder()
    if verb == "resume":
        return ResumeOrder(also_paused=form.get("also_paused") == "1")
    if verb == "stop":
        return StopOrder(finish=form.get("finish") == "1", reason=_reason(form))
    raise NotFoundError(f'a run takes no order "{verb}"')


def _reason(form: Form) -> str:
    reason = form.get("reason") or ""
    if len(reason) > MAX_REASON:
        raise InputError(
            f'reason "{reason[:20]}…" is too long: {len(reason):,} letters',
            hint=f"say it in {MAX_REASON}; nothing was changed",
        )
    return reason


def _partition_order(verb: str, name: str) -> RunOrder:
    kinds: dict[str, type[PauseOrder | DrainOrder | RestartOrder | ResumeOrder]] = {
        "pause": PauseOrder,
        "drain": DrainOrder,
        "restart": RestartOrder,
        "resume": ResumeOrder,
    }
    if verb not in kinds:
        raise NotFoundError(f'a partition takes no order "{verb}"')
    return kinds[verb](partitions=(name,))


def _longer(form: Form) -> ExtendOrder:
    wanted = form.whole("max_new_tokens")
    if wanted is None:
        raise InputError(
            "no max_new_tokens is given", hint="write how long an answer may be, for example 20480"
        )
    if not 1 <= wanted <= MAX_NEW_TOKENS:
        raise InputError(
            f"max_new_tokens {wanted} is not a whole number from 1 to {MAX_NEW_TOKENS:,}",
            hint="write how long an answer may be, for example 20480",
        )
    return ExtendOrder(max_new_tokens=wanted)
