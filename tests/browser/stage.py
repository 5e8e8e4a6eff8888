"""The pages over a real ledger and a real socket, with figures that move when a test wants them to.

Runs on the test's own event loop, so that a test can look at both ends. A ward in front counts what
is asked, and can behave as a proxy that keeps streams to itself or as a service that is broken.
"""

import asyncio
import socket
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import parse_qs

import uvicorn

from app.api import carry_out, create_app
from app.api.listening import QuietServer, bind
from app.api.schemas import ConcurrencyOrder, PauseOrder, RunOrder
from app.clock import SystemClock
from app.core.conditions import Condition, ConditionKind
from app.core.loads import ServerLoad
from app.core.types import RunId
from app.figures import RunFigures
from app.gate import Keys, allowed_hosts
from app.gate.asking import App, Message, Receive, Scope, Send
from app.web.assets import CDN_ONLY
from app.web.site import Site
from tests.api.conftest import Door
from tests.api.home import Home

TICK_S = 0.5  # twice as often as the service looks


@dataclass
class MovingDoor(Door):
    """A service whose speeds, and what fails, are whatever the test says."""

    speed: float = 1_000.0
    step: float = 50.0  # a look; seen in three digits
    failing: tuple[str, ...] = ()  # partitions that need a person
    is_seen: bool = False  # the runner beats and the server answers, at every look

    def figures(self, run_id: RunId) -> RunFigures:
        run = super().figures(run_id)
        partitions = tuple(
            replace(each, speed_tokens_per_s=self.speed + each.id) for each in run.partitions
        )
        conditions = (*run.conditions, *map(failing, self.failing))
        if self.is_seen:
            run = replace(
                run, heartbeat_at=run.at, servers=(ServerLoad(url="http://a", at=run.at),)
            )
        return replace(
            run, partitions=partitions, speed_tokens_per_s=self.speed, conditions=conditions
        )


def failing(name: str) -> Condition:
    return Condition(
        kind=ConditionKind.FAILING,
        since=datetime.now(UTC),
        sentence=f"{name}: 31 % of the last 100 answers failed.",
        partition=name,
        ratio=0.31,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    at_s: float
    method: str
    path: str
    body: dict[str, str]


@dataclass
class Ward:
    """Stands before the application. `streams`: ok, silent or refused; `is_broken`: 503 to all."""

    app: App
    streams: str = "ok"
    is_broken: bool = False
    asked: list[Asked] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, body = scope["path"], b""
        if scope["method"] == "POST":
            message = await receive()
            body = message["body"]  # small: it comes whole

            async def again() -> Message:
                return message

            receive = again
        fields = {name: values[-1] for name, values in parse_qs(body.decode()).items()}
        at_s = asyncio.get_running_loop().time()
        self.asked.append(Asked(at_s=at_s, method=scope["method"], path=path, body=fields))
        if self.is_broken or (path.endswith("/live") and self.streams == "refused"):
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        elif path.endswith("/live") and self.streams == "silent":
            while (await receive())["type"] != "http.disconnect":
                pass
        else:
            await self.app(scope, receive, send)

    def posts(self) -> list[Asked]:
        return [each for each in self.asked if each.method == "POST"]

    def since(self, at_s: float) -> list[str]:
        return [each.path for each in self.asked if each.at_s >= at_s]


def order(stage: "Stage", wanted: RunOrder) -> None:
    """Order something as somebody else does, from another page."""
    home = stage.home
    carry_out(home.ledger, home.run, wanted, who="bert", now=home.clock.now())


def pause(stage: "Stage", name: str) -> None:
    order(stage, PauseOrder(partitions=(name,)))


def set_concurrency(stage: "Stage", name: str, requests: int) -> None:
    order(stage, ConcurrencyOrder(partition=name, requests=requests))


class Stage:
    """A service's web part that can be stopped and started again at the same address."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.door = MovingDoor(home)
        self.port = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.is_ticking = True
        self.offered = CDN_ONLY

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def run_address(self) -> str:
        return f"{self.address}/runs/{self.home.run_id}"

    async def start(self) -> None:
        listener: socket.socket = bind("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        clock = SystemClock()
        keys = Keys("token of a test", is_open_to_own_user=True, port=self.port, clock=clock)
        self.keys = keys
        self.site = Site(self.home.ledger, self.door, keys, clock, self.offered)
        hosts = allowed_hosts("127.0.0.1", self.port)
        app = create_app(
            self.home.ledger, self.door, keys, hosts, clock=clock, pages=self.site.pages
        )
        self.ward = Ward(app)
        self._server = QuietServer(
            uvicorn.Config(
                self.ward,
                log_config=None,
                lifespan="off",
                proxy_headers=False,
                timeout_graceful_shutdown=2,
            )
        )
        self._tasks = [
            asyncio.create_task(self._server.serve(sockets=[listener])),
            asyncio.create_task(self._tick()),
        ]

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if self.is_ticking:
                self.door.speed += self.door.step
                await self.site.live.tick()

    async def stop(self) -> None:
        if not self._tasks:
            return
        serving, ticking = self._tasks
        self._tasks = []
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        self.site.live.close()
        self._server.should_exit = True
        await serving
