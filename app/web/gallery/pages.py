"""What hangs in the gallery and is no sheet: errors, the login, questions, forms, messages.

Owns the list. Each is made from the request for it by what makes the real page.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fastapi import Request
from markupsafe import Markup

from app.errors import ChangedError, ConflictError, InputError, LedgerError, NotFoundError
from app.gate.refusals import Refusal
from app.notifying import Told
from app.web.answers import Again, Undo, changed_message, changed_page
from app.web.assets import own_assets
from app.web.gallery import invented_new_run as new
from app.web.gallery.invented import HOSTILE, RUN
from app.web.gallery.overviews import shown
from app.web.login import BAD_NAME, WRONG, login_page, too_many
from app.web.new_run import drawing
from app.web.notifying import told_page
from app.web.overview import About
from app.web.pages import document, error_page, stop_page
from app.web.rendering import draw, page

Page = Callable[[Request | None], str]
_MESSAGES_HERE = '<div id="toast" role="status" aria-label="Messages">'
_MESSAGES = (
    ("B4_code: concurrency 64 → 96", Undo(address="/runs/7/p/4/concurrency"), False),
    ("B6_dialogue paused; 38 half-written answers saved", None, False),
    ("Not sent: the service does not answer, and nothing was changed. " * 2, None, True),
)
_ERRORS = {
    "404": NotFoundError(
        'there is no run "night"',
        hint='There are 7 "synth_100k" (running)',
        runs=((7, "synth_100k"), (6, HOSTILE)),
    ),
    "409": ConflictError("run 7 is finished; there is nothing to stop"),
    "422": InputError(f'state "{HOSTILE}" is none of pending, running, ok', hint="leave it out"),
    "429": Refusal(
        429, "too_many_tries", "too many wrong tokens", "wait, or look up the right one"
    ),
    "500": None,
    "503": LedgerError(
        "ledger /data/home/ledger.db: database is locked",
        hint="Another process holds it; work goes on by itself, give an order once more",
    ),
}
_CHANGED = ChangedError(
    "B1_part: concurrency was changed to 96 by bert (page) 12 s ago; nothing was changed now",
    now="96",
    hint="Look at it, and order again with expect 96",
)
_AGAIN = Again(
    address="/runs/7/p/1/concurrency",
    fields=(("requests", "128"), ("expect", "96")),
    label="Set 128 anyway",
)
_TOLD = (
    Told(target="webhook chat.internal", is_ok=True, said="it answered 200"),
    Told(target="command notify-me", is_ok=False, said=f"it ended with 127: {HOSTILE}"),
)


def _about(name: str) -> About:
    return About(run_id=7, name=name, n_partitions=0, output_dir="/data/prepared")


def _error(status: str) -> Page:
    """Return the page of an error as it is raised; without one, that of a surprise."""

    def made(_request: Request | None) -> str:
        found = _ERRORS[status]
        if isinstance(found, Refusal):
            return error_page(found.status, found.code, found.message, found.hint)
        if found is None:
            hint = "look for it in the service's log"
            return error_page(int(status), "internal", "internal error 1f2e3d4c", hint)
        runs = found.runs if isinstance(found, NotFoundError) else ()
        return error_page(found.http_status, found.code, found.message, found.hint, runs)

    return made


def _login(**values: str) -> Page:
    return lambda _request: login_page(own_assets().style, **values)


def _new_run(make: Callable[[], Markup]) -> Page:
    return lambda request: document("New run · Longwatch", make(), request=request)


def _said(message: Callable[[], Markup]) -> Page:
    """Return an overview on which an order was refused: the message, and what holds."""

    def made(request: Request | None) -> str:
        first, *others = RUN.partitions
        first = replace(first, own_concurrency=96, concurrency_requests=96)
        sheet = shown(replace(RUN, partitions=(first, *others)))
        text = document(sheet.title, draw(sheet.root, sheet), request=request)
        before, place, rest = text.partition(_MESSAGES_HERE)
        return before + place + message() + rest

    return made


def _bad_input() -> Markup:
    """Return what the script shows of an order that cannot be."""
    error = InputError(
        "concurrency 40000 is not a whole number from 1 to 10,000",
        hint="to send nothing, pause the partition",
    )
    return page("toast.html", {"said": f"{error}.", "undo": None, "is_bad": True})


def _messages(request: Request | None) -> str:
    drawn = [
        page("toast.html", {"said": said, "undo": undo, "is_bad": is_bad})
        for said, undo, is_bad in _MESSAGES
    ]
    body = page("gallery/messages.html", {"drawn": drawn})
    return document("Messages · Longwatch", body, request=request)


PAGES: dict[str, Page] = {
    **{f"error: {status}": _error(status) for status in _ERRORS},
    "login": _login(),
    "login: wrong token": _login(name="anna", error=WRONG),
    "login: locked out": _login(name="anna", error=too_many(27)),
    "login: a name that cannot be": _login(name_error=BAD_NAME),
    "stop a run": partial(stop_page, _about(RUN.name)),
    "stop a run: hostile": partial(stop_page, _about(HOSTILE)),
    "new run: choose": _new_run(lambda: drawing.choosing(new.ROOTS, new.FOLDERS)),
    "new run: nothing to choose from": _new_run(lambda: drawing.choosing((), new.NO_FOLDERS)),
    "new run: no prompts there": _new_run(lambda: drawing.choosing(new.ROOTS, new.NO_FOLDERS)),
    "new run: hostile folders": _new_run(
        lambda: drawing.choosing(new.ROOTS, new.HOSTILE_FOLDERS, refused=HOSTILE)
    ),
    "new run: spec refused": _new_run(
        lambda: drawing.choosing(
            new.ROOTS, new.FOLDERS, text=new.REFUSED_TEXT, wrong=new.REFUSED_WHY
        )
    ),
    "new run: form": _new_run(
        lambda: drawing.form(new.FOLDER, new.filled(new.FOLDER), new.SERVERS, new.OUTPUT_ROOTS)
    ),
    "new run: form refused": _new_run(
        lambda: drawing.form(new.FOLDER, new.BADLY_FILLED, new.SERVERS, (), new.WRONG)
    ),
    "new run: form, hostile": _new_run(
        lambda: drawing.form(
            new.HOSTILE_FOLDER, new.filled(new.HOSTILE_FOLDER, HOSTILE), (), new.OUTPUT_ROOTS
        )
    ),
    "control: 409, somebody was quicker": _said(lambda: changed_message(_CHANGED, _AGAIN)),
    "control: 409, without script": partial(changed_page, _CHANGED, _AGAIN, "/runs/7"),
    "control: 422, no such value": _said(_bad_input),
    "test message": partial(told_page, _TOLD),
    "messages": _messages,
}
