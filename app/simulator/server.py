"""Runs the simulated server: inside this process in a thread of its own, or as a process.

Owns sockets, event loop, and the two ways to end: politely, and like a process that died.
Invariant: after a hard stop every connection is gone without a terminator and the port refuses;
a start on the same port works at once and keeps the counters.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop
from uvicorn.config import Config
from uvicorn.server import ServerState

from app.clock import Clock, SystemClock
from app.simulator.connection import Connection
from app.simulator.counters import Counters
from app.simulator.machine import Machine
from app.simulator.routes import SimulatorApp
from app.simulator.script import Script
from app.simulator.settings import SimulatorSettings, live_changes

START_TIMEOUT_S = 20.0
BACKLOG = 2048
_LAST_TURNS = 5

T = TypeVar("T")


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


class RunningServer:
    """One life of the server on an event loop."""

    def __init__(self, settings: SimulatorSettings, clock: Clock, counters: Counters) -> None:
        self._state = ServerState()
        self._state.default_headers = [(b"server", b"uvicorn")]
        self._ended = asyncio.Event()
        self._counters = counters
        self._listener: asyncio.Server | None = None
        self._settings = settings
        self.machine = Machine(settings, clock, counters, die=self.die)
        self._config = Config(
            SimulatorApp(self.machine),
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=settings.keep_alive_s,
        )

    async def open(self) -> str:
        """Listen; return the address."""
        settings = self._settings
        sock = bind(settings.host, settings.port)
        self._config.load()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._connection, sock=sock, backlog=BACKLOG)
        self.machine.port = sock.getsockname()[1]
        self._counters.starts += 1
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"http://{host}:{self.machine.port}"

    def _connection(self) -> asyncio.Protocol:
        return Connection(self._config, self._state, {}, self._accepted)

    def _accepted(self) -> None:
        self._counters.tcp_accepts += 1

    def die(self) -> None:
        """Close everything at once, as the kernel does for a dead process."""
        if self._listener is not None:
            self._listener.close()
        self.machine.engine.close()
        for connection in tuple(self._state.connections):
            connection.transport.abort()
        self._ended.set()

    async def wait_ended(self) -> None:
        await self._ended.wait()
        # Requests of cut connections notice by themselves; what does not is ended with the loop.
        if self._state.tasks:
            await asyncio.wait(tuple(self._state.tasks), timeout=0.5)
        for _ in range(_LAST_TURNS):  # who was accepted while the listener closed is cut as well
            for connection in tuple(self._state.connections):
                connection.transport.abort()
            await self.machine.clock.sleep(0)


async def serve(
    settings: SimulatorSettings,
    ready: Callable[[str], None] | None = None,
    clock: Clock | None = None,
) -> None:
    """Serve until the server dies or the task is cancelled."""
    counters = Counters(log_limit=settings.log_limit)
    server = RunningServer(settings, clock or SystemClock(), counters)
    url = await server.open()
    if ready is not None:
        ready(url)
    try:
        await server.wait_ended()
    finally:
        server.die()


class SimulatorThread:
    """The server in a thread, for tests: `with SimulatorThread(port=0) as simulator: ...`."""

    def __init__(self, settings: SimulatorSettings | None = None, **changes: Any) -> None:
        base = settings or SimulatorSettings(port=0)
        self.settings = replace(base, **changes)
        self.counters = Counters(log_limit=self.settings.log_limit)
        self.url = ""
        self._script = Script()
        self._endpoints: dict[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: RunningServer | None = None

    @property
    def stats(self) -> Counters:
        return self.counters

    @property
    def port(self) -> int:
        return self.settings.port

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> Self:
        """Start, or start again on the same port; counters and script go on."""
        self.join()
        started: Future[str] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="simulator", daemon=True
        )
        self._thread.start()
        self.url = started.result(START_TIMEOUT_S)
        return self

    def stop(self, *, hard: bool = True) -> None:
        """End the server; hard cuts every stream, soft lets what is in flight end first."""
        if not hard and self.alive:
            self._call(lambda machine: machine.engine.unfreeze())
            self._drain()
        if self.alive and self._loop is not None and self._server is not None:
            # The loop may just have ended by itself (a scripted exit): then there is nothing to do.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._server.die)
        self.join()

    def join(self) -> None:
        """Wait until the server's thread has ended (after `stop`, or a scripted `exit`)."""
        if self._thread is not None:
            self._thread.join(START_TIMEOUT_S)
            if self._thread.is_alive():
                raise TimeoutError(f"the simulator at {self.url} is still running: call stop()")
            self._thread = None

    def script(
        self, server: Mapping[str, Any] | None = None, endpoints: Mapping[str, Any] | None = None
    ) -> None:
        """Replace the script and, if given, the endpoint overrides."""
        self._script = Script(server)
        if endpoints is not None:
            self._endpoints = dict(endpoints)
        if self.alive:
            self._call(lambda machine: machine.set_script(self._script, endpoints))

    def freeze(self) -> None:
        self._call(lambda machine: machine.engine.freeze())

    def unfreeze(self) -> None:
        self._call(lambda machine: machine.engine.unfreeze())

    def set(self, **changes: Any) -> None:
        """Change settings of the running server, and of the next start."""
        self.settings = replace(self.settings, **live_changes(changes))
        if self.alive:
            self._call(lambda machine: machine.change(changes))

    def ask(self, question: Callable[[Machine], T]) -> T:
        """Return what the question finds, asked on the server's own thread."""
        return self._call(question)

    def _call(self, order: Callable[[Machine], T]) -> T:
        if self._loop is None or self._server is None or not self.alive:
            raise RuntimeError(f"the simulator at {self.url or 'no address'} does not run")
        server = self._server

        async def carry_out() -> T:
            return order(server.machine)

        return asyncio.run_coroutine_threadsafe(carry_out(), self._loop).result(START_TIMEOUT_S)

    def _drain(self) -> None:
        waited = threading.Event()
        while self.counters.in_flight and not waited.wait(0.01):
            pass

    def _run(self, started: Future[str]) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(started))

    async def _serve(self, started: Future[str]) -> None:
        try:
            self._loop = asyncio.get_running_loop()
            self._server = RunningServer(self.settings, SystemClock(), self.counters)
            self._server.machine.set_script(self._script, self._endpoints)
            url = await self._server.open()
            # A free port that was found once is kept for the next start.
            self.settings = replace(self.settings, port=self._server.machine.port)
        except BaseException as error:
            started.set_exception(error)
            raise
        started.set_result(url)
        await self._server.wait_ended()


__all__ = ["RunningServer", "SimulatorSettings", "SimulatorThread", "serve"]
