"""The login page: a token, and a name for the list of activity; and the way out.

Owns the two fields and what is said about them. The token goes from the form into a comparison and
nowhere else: no page, address, cookie or log line holds it.
"""

import logging
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.core.format import plural
from app.gate import Keys
from app.gate.asking import asking_of
from app.gate.keys import Login
from app.gate.refusals import LOGIN_PATH, LOGOUT_PATH, local_path
from app.gate.sessions import DEFAULT_NAME, MAX_NAME_CHARS, Sessions, clean_name
from app.web.rendering import page

logger = logging.getLogger("longwatch")
_MAX_FIELDS = 10
WRONG = "This is not the token of this service."
BAD_NAME = f"A name has at most {MAX_NAME_CHARS} characters, all of them printable."


def too_many(wait_s: int) -> str:
    """Return what is said to who may not try for so long."""
    return f"Too many wrong tokens were tried. Try again in {plural(wait_s, 'second')}."


def login_page(css_url: str, **values: str) -> str:
    """Return the page: `next`, where to go; `name`; `error` and `name_error`, what is wrong.

    `again` is where it goes by itself, "" if a person has to log in.
    """
    shown: dict[str, object] = {"css": css_url, "max_name": MAX_NAME_CHARS, "next": "/"}
    shown |= {"name": DEFAULT_NAME, "error": "", "name_error": "", "again": ""} | values
    return page("login.html", shown)


def login_routes(keys: Keys, css_url: str) -> APIRouter:
    """Return the routes of `/login`, an open path of the gate, and `/logout`."""
    desk = _Desk(keys, css_url)
    router = APIRouter(include_in_schema=False)
    router.add_api_route(LOGIN_PATH, desk.ask, methods=["GET"], response_model=None)
    router.add_api_route(LOGIN_PATH, desk.log_in, methods=["POST"], response_model=None)
    router.add_api_route(LOGOUT_PATH, desk.log_out, methods=["POST"], response_model=None)
    return router


class _Desk:
    def __init__(self, keys: Keys, css_url: str) -> None:
        self._keys = keys
        self._css_url = css_url

    def ask(self, request: Request) -> Response:
        """Show the form; who has a session goes on to where they wanted to go."""
        wanted = local_path(request.query_params.get("next", "/"))
        if request.state.session:
            return _to(wanted)
        return self._form(next=wanted, again=_once_more(request))

    async def log_in(self, request: Request) -> Response:
        """Start a session for who knows the token."""
        fields = _fields(await request.body())
        wanted = local_path(fields.get("next", "/"))
        name = clean_name(fields.get("name", ""))
        if name is None:
            return self._form(422, next=wanted, name_error=BAD_NAME)
        address = request.client.host if request.client else "an unknown address"
        token = fields.get("token", "").strip()
        result, wait_s = self._keys.log_in(token, request.scope.get("client"))
        sessions = {Login.RIGHT: self._keys.sessions, Login.LOOKING: self._keys.view_sessions}
        made = sessions.get(result)
        if made is not None:
            looks = " to look only" if result is Login.LOOKING else ""
            logger.info('login of "%s" from %s%s', name, address, looks)
            return self._let_in(made, name, wanted, request)
        if result is Login.WRONG:
            logger.warning("login from %s refused: not the token", address)
            return self._form(401, next=wanted, name=name, error=WRONG)
        late = self._form(429, next=wanted, name=name, error=too_many(wait_s))
        late.headers["retry-after"] = str(wait_s)
        return late

    async def log_out(self, request: Request) -> Response:
        """End the session of this browser, and whatever copy there is of its cookie."""
        self._keys.log_out(asking_of(request.scope))
        answer = _to(LOGIN_PATH)
        answer.headers["set-cookie"] = self._keys.sessions.ending(is_https=_is_https(request))
        return answer

    def _let_in(self, made: Sessions, name: str, wanted: str, request: Request) -> Response:
        answer = _to(wanted)
        now = self._keys.clock.now()
        cookie = made.cookie(name, now, is_https=_is_https(request))
        answer.headers["set-cookie"] = cookie
        return answer

    def _form(self, status: int = 200, **values: str) -> HTMLResponse:
        return HTMLResponse(login_page(self._css_url, **values), status)


def _once_more(request: Request) -> str:
    """Return where the page goes by itself, nothing if a person has to log in.

    A strict cookie stays away from a link that was followed from another site, but not from our own
    page: it asks once more before it bothers somebody who is logged in.
    """
    is_link = request.headers.get("sec-fetch-site", "") in ("cross-site", "same-site")
    if not is_link or "again" in request.query_params:
        return ""
    again = request.url.include_query_params(again=1)
    return f"{again.path}?{again.query}"


def _to(path: str) -> RedirectResponse:
    return RedirectResponse(path, 303)


def _is_https(request: Request) -> bool:
    """Return whether the browser speaks to a proxy by https: its own word, checked by the gate."""
    return asking_of(request.scope).first("origin").startswith("https:")


def _fields(body: bytes) -> dict[str, str]:
    """Return the fields of a form; nothing of one that cannot be read."""
    try:
        found = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except (UnicodeDecodeError, ValueError):
        return {}
    return {name: values[-1] for name, values in found.items()}
