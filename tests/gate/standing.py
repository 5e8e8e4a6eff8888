"""A door that stands: the real application with its login page, served by uvicorn in a thread."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import uvicorn
from fastapi import APIRouter, FastAPI, Request

from app.api import Pages, create_app
from app.api.listening import QuietServer, bind
from app.clock import SystemClock
from app.gate import Keys, allowed_hosts
from app.gate.refusals import Runs
from app.web.assets import asset_routes, own_assets
from app.web.login import login_routes
from tests.api.conftest import Door
from tests.api.home import Home

TOKEN = "a-token-of-this-door"  # noqa: S105 - opens nothing
VIEW_TOKEN = "a-key-to-look-through"  # noqa: S105 - likewise
OPEN = frozenset({"/login"})


@dataclass
class HandClock(SystemClock):
    """A clock that is put forward by hand."""

    ahead_s: float = 0.0
    _started_at: datetime = field(default_factory=SystemClock().now)

    def now(self) -> datetime:
        return self._started_at + timedelta(seconds=self.ahead_s)

    def monotonic(self) -> float:
        return 1_000.0 + self.ahead_s


@dataclass(frozen=True, kw_only=True)
class Standing:
    port: int
    home: Home
    keys: Keys
    clock: HandClock
    app: FastAPI

    @property
    def origin(self) -> str:
        return f"Origin: http://127.0.0.1:{self.port}"

    def cookie(self, name: str = "Ada") -> str:
        """Return the Cookie header of a session that lasts for another hour."""
        expires = int(self.clock.now().timestamp()) + 3_600
        return f"Cookie: longwatch_{self.port}={self.keys.sessions.value(name, expires)}"

    def view_cookie(self, name: str = "Vera") -> str:
        """Return the Cookie header of somebody who may only look."""
        assert self.keys.view_sessions is not None
        expires = int(self.clock.now().timestamp()) + 3_600
        return f"Cookie: longwatch_{self.port}={self.keys.view_sessions.value(name, expires)}"


def pages(keys: Keys, *more: APIRouter, with_cdn: bool = True) -> Pages:
    return Pages(
        routers=(login_routes(keys, own_assets().style), asset_routes(), _probes(), *more),
        open_paths=OPEN | {own_assets().style},
        error_page=_error_page,
        with_cdn=with_cdn,
    )


def _error_page(status: int, code: str, message: str, hint: str, runs: Runs = ()) -> str:
    return f"<h1>{status} {code}</h1>{message} {hint}{''.join(name for _, name in runs)}"


def _probes() -> APIRouter:
    """Return pages that say who asks, and one that breaks."""
    router = APIRouter()

    @router.get("/runs/7")
    def who(request: Request) -> dict[str, object]:
        return {"who": request.state.who, "session": request.state.session}

    @router.get("/broken")
    def broken() -> None:
        raise RuntimeError("a secret of the inside")

    return router


@contextmanager
def standing(
    home: Home, *, is_open_to_own_user: bool, more_hosts: str = "", host: str = "127.0.0.1"
) -> Iterator[Standing]:
    """Serve the home's API and login page until the block ends."""
    listener = bind(host, 0)
    port = listener.getsockname()[1]
    clock = HandClock()
    keys = Keys(
        TOKEN,
        is_open_to_own_user=is_open_to_own_user,
        port=port,
        clock=clock,
        view_token=VIEW_TOKEN,
    )
    hosts = allowed_hosts(host, port, more_hosts)
    app = create_app(home.ledger, Door(home), keys, hosts, pages=pages(keys))
    configuration = uvicorn.Config(app, log_config=None, lifespan="off", proxy_headers=False)
    server = QuietServer(configuration)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield Standing(port=port, home=home, keys=keys, clock=clock, app=app)
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
