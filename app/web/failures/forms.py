"""POST of a retry: of all that was chosen on the page of failures.

Without script the first post leads to a page that says what it would do; what that page posts is
done. With htmx one press does it. There is no way back, and the answer says so.
"""

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from app.controls import find_run
from app.core.format import plural
from app.retrying import Retried, retry_chosen
from app.web.actions import Form, answer
from app.web.failures.kind import SURVEY, choice_of, query_of
from app.web.kinds import Desk

_FIELDS = ("partition", "state", "reason", "group", "spare")
_MOST_NAMED = 4


def failure_forms(desk: Desk) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/runs/{run}/failures/retry")
    async def retry(run: str, request: Request) -> Response:
        form = Form(await request.body())
        choice = choice_of({name: form.get(name) or "" for name in _FIELDS})
        found = await run_in_threadpool(find_run, desk.ledger, run)
        has_script = request.headers.get("hx-request") == "true"
        if not has_script and form.get("sure") != "1":
            return RedirectResponse(f"/runs/{found.id}/failures/retry{query_of(choice)}", 303)

        def at_once() -> Retried:
            who, now = request.state.who, desk.clock.now()
            return retry_chosen(desk.ledger, found, choice, who=who, now=now)

        done = await run_in_threadpool(at_once)
        desk.fresh.forget((SURVEY, found.id))
        desk.service.poke()
        if has_script:
            return answer(request, found, told(done), None)
        shown = [(name, form.get(name) or "") for name in _FIELDS[:3]]
        query = urlencode([pair for pair in shown if pair[1]])
        return RedirectResponse(f"/runs/{found.id}/failures{'?' if query else ''}{query}", 303)

    return router


def told(done: Retried) -> str:
    """Return what a retry did, with what there is instead of a way back."""
    if not done.n:
        return "The run goes on. Nothing more was there to try again."
    named = [f"{name} {n:,}" for name, n in done.by_partition[:_MOST_NAMED]]
    more = len(done.by_partition) - len(named)
    where = ", ".join(named) + (f" and {plural(more, 'more partition')}" if more else "")
    said = f"{plural(done.n, 'sample')} pending again: {where}."
    if done.spent:
        spent = ", ".join(done.spent[:_MOST_NAMED])
        said += f" The token budget of {spent} is used up: raise it to send them."
    return f"{said} This cannot be taken back; pause a partition to hold them."
