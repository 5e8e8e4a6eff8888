"""What a posted form is answered with: a message for htmx, the way back for a plain post.

Owns what a message offers: to take the order back, or, where somebody was quicker, to give it all
the same. Invariants: the way back is a page of this service, never an address of another; what is
taken back is offered to be done again, and is not itself taken back by the next press of the key.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from app.core.views import RunView
from app.errors import ChangedError
from app.web.pages import document
from app.web.rendering import page

_UNDOING = "undo"
# the pages of a run, after its address: what a form was refused with stands at that form's own
_PAGES = re.compile(r"(?:/(?:p/[^/]+|failures|activity|server|samples(?:/[^/]+)?))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """The form that takes an order back. Only what is `is_stacked` the key takes back."""

    address: str
    fields: tuple[tuple[str, str], ...] = ()
    label: str = "Undo"
    is_stacked: bool = True

    @property
    def taking_back(self) -> str:
        """The address, saying whether the order is one that takes another back."""
        if not self.is_stacked:
            return self.address
        return f"{self.address}{'&' if '?' in self.address else '?'}{_UNDOING}=1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """The order that was refused, as a form: its address, its fields, what the button says."""

    address: str
    fields: Sequence[tuple[str, str]]
    label: str


def answer(
    request: Request, run: RunView, said: str, undo: Undo | None, *, ask: str = ""
) -> Response:
    """Say what was done: a message for htmx, the way back to the page for a plain post.

    `ask`: where the message finds out, a moment later, what came of it.
    """
    if request.headers.get("hx-request") == "true":
        if undo is not None and request.query_params.get(_UNDOING):
            undo = replace(undo, label="Redo", is_stacked=False)
        return HTMLResponse(page("toast.html", {"said": said, "undo": undo, "ask": ask}))
    return RedirectResponse(way_back(request, run), 303)


def way_back(request: Request, run: RunView) -> str:
    """Return the page of the run that a form was sent from; its overview if that is not known."""
    overview = f"/runs/{run.id}"
    came = urlsplit(request.headers.get("referer", ""))
    is_ours = bool(came.netloc) and came.netloc == request.headers.get("host")
    rest = came.path.removeprefix(overview) if came.path.startswith(overview) else None
    if not is_ours or rest is None or not _PAGES.fullmatch(rest):
        return overview
    return f"{came.path}?{came.query}" if came.query else came.path


def refused(request: Request, run: RunView, error: ChangedError, again: Again) -> Response:
    """Say who was quicker, and offer the order all the same: with 409, nothing was changed."""
    if request.headers.get("hx-request") == "true":
        return HTMLResponse(changed_message(error, again), 409)
    return HTMLResponse(changed_page(error, again, way_back(request, run), request), 409)


def changed_message(error: ChangedError, again: Again) -> Markup:
    """Return the message that somebody was quicker."""
    undo = Undo(
        address=again.address,
        fields=tuple(again.fields),
        label=again.label,
        is_stacked=False,
    )
    return page("toast.html", {"said": f"{error.message}.", "undo": undo, "is_bad": True})


def changed_page(error: ChangedError, again: Again, back: str, request: Request | None) -> str:
    """Return the same as a page, for who has no script."""
    body = page("changed.html", {"said": f"{error.message}.", "again": again, "back": back})
    return document("Changed meanwhile · Longwatch", body, request=request)
