"""POST: the concurrency of a partition, typed, stepped, or given back to its class.

Owns by how much a button changes it, and what is expected to hold when it is set: another person's
value of that moment is never overwritten unseen.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from app.api import ServiceDoor
from app.api.schemas import ConcurrencyOrder, OrderAnswer, RunOrder
from app.api.sending import RowId
from app.controls import MAX_CONCURRENCY
from app.core.views import RunView
from app.errors import ChangedError, InputError
from app.ledger.db import Ledger
from app.ledger.seen import SHARE
from app.web.answers import Again, Undo, answer, refused
from app.web.forms import Form, named

CarryOut = Callable[[RunView, RunOrder, Request], Coroutine[Any, Any, OrderAnswer]]


def step_of(n: int) -> int:
    """Return by how much a button changes a concurrency.

    >>> [step_of(n) for n in (1, 16, 64, 300)]
    [1, 4, 8, 16]
    """
    return 1 if n < 16 else 4 if n < 64 else 8 if n < 256 else 16  # noqa: PLR2004 - the rule itself


def add_concurrency(
    router: APIRouter, ledger: Ledger, service: ServiceDoor, carried_out: CarryOut
) -> None:
    """Add the form; before the one that takes any verb."""

    @router.post("/runs/{run}/p/{partition_id}/concurrency")
    async def concurrency(run: str, partition_id: RowId, request: Request) -> Response:
        form = Form(await request.body())
        found, name = await run_in_threadpool(named, ledger, run, partition_id)
        wanted = await run_in_threadpool(_wanted, service, found, partition_id, form)
        address = f"/runs/{found.id}/p/{partition_id}/concurrency"
        order = ConcurrencyOrder(partition=name, requests=wanted, expect=_expected(form))
        try:
            change = (await carried_out(found, order, request)).changes[0]
        except ChangedError as error:
            said = "Give it back to its class anyway" if wanted is None else f"Set {wanted} anyway"
            fields = (*_fields(wanted), ("expect", error.now))
            return refused(request, found, error, Again(address=address, fields=fields, label=said))
        old = change.old.replace(",", "")
        before = int(old) if old.isdigit() else None
        fields = (*_fields(before), ("expect", SHARE if wanted is None else str(wanted)))
        undo = Undo(address=address, fields=fields)
        return answer(request, found, f"{name}: concurrency {change.old} → {change.new}", undo)


def _fields(requests: int | None) -> tuple[tuple[str, str], ...]:
    return (("share", "1"),) if requests is None else (("requests", str(requests)),)


def _expected(form: Form) -> Any:
    """Return what the order expects to hold now: a number or "share"; None: it does not say."""
    expected = SHARE if form.get("expect") == SHARE else form.whole("expect")
    if isinstance(expected, int) and expected < 1:
        raise InputError(f"expect {expected} is no concurrency", hint="reload the page")
    return expected


def _wanted(service: ServiceDoor, run: RunView, partition_id: int, form: Form) -> int | None:
    """Return the concurrency that a form asks for, None for the share of the class."""
    if form.get("share") == "1":
        return None
    typed, delta = form.whole("requests"), form.whole("delta")
    if delta is not None:
        now = typed or next(
            (
                each.own_concurrency or each.concurrency_requests
                for each in service.figures(run.id).partitions
                if each.id == partition_id
            ),
            None,
        )
        base = now or 1
        typed = max(1, base + (1 if delta > 0 else -1) * step_of(base - (delta < 0)))
    if typed is None:
        raise InputError("no concurrency is given", hint="write a whole number, for example 64")
    if not 1 <= typed <= MAX_CONCURRENCY:
        raise InputError(
            f"concurrency {typed} is not a whole number from 1 to {MAX_CONCURRENCY:,}",
            hint="to send nothing, pause the partition",
        )
    return typed
