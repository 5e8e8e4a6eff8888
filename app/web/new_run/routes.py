"""`/new`: the folders to choose from, the form of one, a spec to paste; and what these post.

Every step is a plain form and a plain answer: refused with the values kept (422), or on to the
review (303). Nothing here needs a script.
"""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from app.core.spec_toml import to_toml
from app.errors import InputError
from app.files.prompt_folders import PromptFolder, prompt_folders
from app.gate.keys import Role
from app.submission import permitted
from app.web.kinds import Desk
from app.web.new_run import drawing
from app.web.new_run.asking import choosable_servers, chosen_folder, first_form, spec_of
from app.web.new_run.checks import Checks
from app.web.new_run.drawing import NOTHING_WRONG
from app.web.new_run.fields import Asked, Complaints
from app.web.new_run.spec_lines import with_lines
from app.web.pages import document, error_page

PATH = "/new"
_ONLY_OPERATORS = (
    "only operators may start runs; this key may only look",
    "to start one, log out and log in with the token of operators",
)


def new_run_routes(desk: Desk, checks: Checks) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(PATH)
    def shown(request: Request) -> HTMLResponse:
        if getattr(request.state, "role", "") == Role.VIEWER:  # who may not start a run ...
            said, hint = _ONLY_OPERATORS  # ... needs not know which folders there are
            return HTMLResponse(error_page(403, "only_looking", said, hint), 403)
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
    desk: Desk, asked: Asked, request: Request, wrong: Complaints = NOTHING_WRONG
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
    roots = permitted(desk.service.settings).prompts_roots
    body = drawing.choosing(roots, prompt_folders(roots), text=text, wrong=wrong, refused=refused)
    return _document(request, 422 if wrong or refused else 200, body)


def _form(
    desk: Desk,
    request: Request,
    folder: PromptFolder,
    asked: Asked,
    wrong: Complaints = NOTHING_WRONG,
) -> HTMLResponse:
    output_roots = permitted(desk.service.settings).output_roots
    body = drawing.form(folder, asked, choosable_servers(desk), output_roots, wrong)
    return _document(request, 422 if wrong else 200, body)


def _document(request: Request, status: int, body: Markup) -> HTMLResponse:
    return HTMLResponse(document("New run · Longwatch", body, request=request), status)
