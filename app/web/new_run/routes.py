"""`/new`: the folders to choose from, the form of one, a spec to paste; and what these post.

Every step is a plain form and a plain answer: refused with the values kept (422), or on to the
review (303). Nothing here needs a script.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from app.core import format as words
from app.core.spec_toml import to_toml
from app.errors import InputError
from app.files.prompt_folders import Found, PromptFolder, prompt_folders
from app.submission import permitted
from app.submission.permitting import OUTPUT_SETTING, PROMPTS_SETTING, SERVERS_SETTING
from app.web.kinds import Desk
from app.web.new_run.asking import (
    Server,
    choosable_servers,
    chosen_folder,
    first_form,
    spec_of,
)
from app.web.new_run.checks import Checks
from app.web.new_run.fields import CLASSES, Asked, Complaints
from app.web.new_run.spec_lines import with_lines
from app.web.pages import document
from app.web.rendering import page

PATH = "/new"
_NOTHING_WRONG = Complaints(by_field={})
_SETTINGS = {"prompts": PROMPTS_SETTING, "output": OUTPUT_SETTING, "servers": SERVERS_SETTING}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A folder in the list; `address` is "" where it cannot be chosen."""

    shown: str
    address: str
    said: str
    names: tuple[str, ...]


def new_run_routes(desk: Desk, checks: Checks) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(PATH)
    def shown(request: Request) -> HTMLResponse:
        return _shown(desk, checks, request)

    @router.post(PATH)
    async def checked(request: Request) -> Response:
        asked = Asked.of_body(await request.body())
        found = await run_in_threadpool(spec_of, desk, asked)
        if isinstance(found, Complaints):
            return await run_in_threadpool(_again, desk, asked, request, found)
        return RedirectResponse(f"{PATH}/{checks.begin(found, asked.values).id}", 303)

    @router.post(PATH + "/{check_id}/start")
    async def start(check_id: str, request: Request) -> Response:
        run_id = await checks.start(check_id, request.state.who)
        onward = f"{PATH}/{check_id}" if run_id is None else f"/runs/{run_id}"
        return RedirectResponse(onward, 303)

    @router.get(PATH + "/{check_id}/spec.toml")
    def spec_file(check_id: str) -> PlainTextResponse:
        text = to_toml(checks.get(check_id).spec)
        headers = {"content-disposition": 'attachment; filename="spec.toml"'}
        return PlainTextResponse(text, headers=headers)

    return router


def _shown(desk: Desk, checks: Checks, request: Request) -> HTMLResponse:
    """Show where a run begins: a choice, the form of a folder, or what was checked before."""
    asked = request.query_params
    if "again" in asked:
        return _again(desk, Asked(checks.get(asked["again"]).asked), request)
    if "spec" in asked:
        return _choose(desk, request, text=to_toml(checks.get(asked["spec"]).spec))
    if "prompts" in asked:
        folder = chosen_folder(desk, asked["prompts"])
        return _form(desk, request, folder, first_form(desk, folder))
    return _choose(desk, request)


def _again(
    desk: Desk, asked: Asked, request: Request, wrong: Complaints = _NOTHING_WRONG
) -> HTMLResponse:
    """Show a form as it was filled in, with what is wrong with it."""
    if asked.spec_text is not None:
        told = with_lines(wrong, asked.spec_text)
        return _choose(desk, request, text=asked.spec_text, wrong=told)
    try:
        folder = chosen_folder(desk, asked.get("prompts_dir"))
    except InputError as error:
        return _choose(desk, request, refused=str(error))
    return _form(desk, request, folder, asked, wrong)


def _choose(
    desk: Desk,
    request: Request,
    *,
    text: str = "",
    wrong: tuple[str, ...] = (),
    refused: str = "",
) -> HTMLResponse:
    allowed = permitted(desk.service.settings)
    found = prompt_folders(allowed.prompts_roots)
    shown = {
        "roots": [str(each) for each in allowed.prompts_roots],
        "choices": [_choice(each) for each in found.folders],
        "troubles": _troubles(found),
        "settings": _SETTINGS,
        "text": text,
        "wrong": wrong,
        "refused": refused,
    }
    status = 422 if wrong or refused else 200
    return _document(request, status, "new_run/choose.html", shown)


def _troubles(found: Found) -> list[str]:
    more = f"only the first {len(found.folders)} folders with prompts are listed; a narrower root"
    return [*found.troubles, *([f"{more} in {PROMPTS_SETTING} shows the others"] * found.is_cut)]


def _choice(folder: PromptFolder) -> _Choice:
    path, names = str(folder.path), tuple(each.partition for each in folder.files)
    said = (
        f"{words.plural(len(names), 'partition')}, {words.size(folder.size_bytes)},"
        f" {', '.join(sorted({each.kind for each in folder.files}))}"
    )
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = path.encode("utf-8", "backslashreplace").decode()
        return _Choice(shown=shown, address="", said="its name is no UTF-8; rename it", names=())
    is_usable = not folder.trouble
    return _Choice(
        shown=path,
        address=path if is_usable else "",
        said=said if is_usable else folder.trouble,
        names=names,
    )


def _form(
    desk: Desk,
    request: Request,
    folder: PromptFolder,
    asked: Asked,
    wrong: Complaints = _NOTHING_WRONG,
) -> HTMLResponse:
    shown = {
        "folder": str(folder.path),
        "files": [(each, words.size(each.size_bytes)) for each in folder.files],
        "asked": asked,
        "wrong": wrong.by_field,
        "others": wrong.others,
        "n_wrong": len(wrong.by_field) + len(wrong.others),
        "servers": _offered(choosable_servers(desk), asked),
        "output_roots": [str(each) for each in permitted(desk.service.settings).output_roots],
        "settings": _SETTINGS,
        "classes": CLASSES,
    }
    return _document(request, 422 if wrong else 200, "new_run/form.html", shown)


def _offered(servers: list[Server], asked: Asked) -> list[tuple[Server, bool]]:
    chosen = asked.all("server_urls")
    return [(each, each.url in chosen) for each in servers]


def _document(
    request: Request, status: int, template: str, shown: Mapping[str, object]
) -> HTMLResponse:
    body = page(template, shown)
    return HTMLResponse(document("New run · Longwatch", body, request=request), status)
