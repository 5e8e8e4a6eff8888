"""The HTTP face of the simulated server: which path is answered by what.

Owns paths, methods, the key check and overridden endpoints; the answers are made elsewhere.
Order of a request: whole-server faults, overrides, key, route.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import orjson

from app.simulator.connection import SCOPE_KEY, Connection
from app.simulator.control import control
from app.simulator.generate import generate
from app.simulator.machine import Machine
from app.simulator.metrics import LOADS_SINCE, metrics_text, version_numbers
from app.simulator.playback import deep_merge
from app.simulator.refusals import BodyRefusedError, invalid_body, wrong_type
from app.simulator.replies import Send, send_body, send_json
from app.simulator.reports import loads, model_info, models, server_info
from app.simulator.tokenize import detokenize, tokenize

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]

REPORTS: dict[str, Callable[[Machine], dict[str, Any]]] = {
    "/server_info": server_info,
    "/get_server_info": server_info,
    "/model_info": model_info,
    "/get_model_info": model_info,
    "/v1/models": models,
    "/v1/loads": loads,
}
TOKENIZERS = {
    "/tokenize": tokenize,
    "/v1/tokenize": tokenize,
    "/detokenize": detokenize,
    "/v1/detokenize": detokenize,
}
OPEN_PREFIXES = ("/health", "/ready", "/metrics", "/sim/")
ADMIN_PATHS = ("/abort_request", "/flush_cache")
_METRICS_HEADER = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_TEXT_HEADER = (b"content-type", b"text/plain; charset=utf-8")
_FLUSHED = (
    b"Cache flushed.\nPlease check backend logs for more details. (When there are running or "
    b"waiting requests, the operation will not be performed.)\n"
)


class SimulatorApp:
    """The ASGI application of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        requests = self.machine.counters.http_requests
        requests[path] = requests.get(path, 0) + 1
        try:
            await self._route(scope, receive, send)
        except BodyRefusedError as refusal:
            await send_json(send, refusal.status, refusal.body)
        except orjson.JSONDecodeError as error:
            detail = {"error": f"{method} {path}: the body is not JSON: {error}"}
            await send_json(send, 400, detail)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith("/sim/"):
            await self._control(scope, receive, send)
        elif self.machine.settings.unavailable:
            await send_body(send, 503, b"")
        elif path in self.machine.endpoints.answers:
            await self._override(path, send)
        elif not self._has_key(scope):
            await send_json(send, 401, {"error": "Unauthorized"})
        elif path == "/generate":
            await self._generate(scope, receive, send)
        elif scope["method"] == "GET":
            await self._get(path, send)
        else:
            await self._post(path, await read_all(receive), send)

    def _has_key(self, scope: Scope) -> bool:
        settings, path = self.machine.settings, scope["path"]
        if path.startswith(OPEN_PREFIXES):
            return True
        key = settings.api_key
        if settings.admin_api_key is not None and path in ADMIN_PATHS:
            key = settings.admin_api_key
        return key is None or header(scope, b"authorization") == f"Bearer {key}"

    async def _control(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = await read_all(receive)
        body = orjson.loads(raw) if raw else {}
        reply = control(self.machine, scope["method"], scope["path"], body)
        if reply is None:
            await send_json(send, 404, {"detail": "Not Found"})
        else:
            await send_json(send, 200, reply)

    async def _override(self, path: str, send: Send) -> None:
        kind, value = self.machine.endpoints.answers[path]
        if kind == "json":
            report = REPORTS.get(path)
            body = value if report is None else deep_merge(report(self.machine), value)
            await send_json(send, 200, body)
        elif kind == "json!":  # as it stands, nothing of the healthy answer under it
            await send_json(send, 200, value)
        elif kind == "text":
            await send_body(send, 200, str(value).encode(), [_TEXT_HEADER])
        elif isinstance(value, str):
            await send_body(send, int(kind), value.encode(), [_TEXT_HEADER])
        else:
            await send_json(send, int(kind), value)

    async def _generate(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("POST", "PUT"):
            await send_json(
                send, 405, {"detail": "Method Not Allowed"}, headers={"allow": "PUT, POST"}
            )
            return
        body = await read_all(receive)
        connection = cast("Connection", scope[SCOPE_KEY])
        await generate(self.machine, body, header(scope, b"content-type"), connection, send)

    async def _get(self, path: str, send: Send) -> None:
        settings = self.machine.settings
        if path in ("/health", "/health_generate", "/ready", "/ping"):
            if settings.health_delay_s:
                await self.machine.clock.sleep(settings.health_delay_s)
            await send_body(send, 503 if settings.loading else 200, b"")
        elif path == "/v1/loads" and version_numbers(settings.version) < LOADS_SINCE:
            await send_json(send, 404, {"detail": "Not Found"})
        elif path in REPORTS:
            if settings.info_delay_s:
                await self.machine.clock.sleep(settings.info_delay_s)
            await send_json(send, 200, REPORTS[path](self.machine))
        elif path == "/metrics" and settings.enable_metrics:
            await send_body(send, 200, metrics_text(self.machine).encode(), [_METRICS_HEADER])
        elif path == "/":
            await send_json(send, 200, "SGLang is running")
        else:
            await send_json(send, 404, {"detail": "Not Found"})

    async def _post(self, path: str, body: bytes, send: Send) -> None:
        if path in TOKENIZERS:
            answer = TOKENIZERS[path](json_object(body), self.machine.settings)
            await send_json(send, 200, answer)
        elif path == "/abort_request":
            order = json_object(body)
            self.machine.abort(order.get("rid"), everything=bool(order.get("abort_all")))
            await send_body(send, 200, b"")
        elif path == "/flush_cache":
            idle = not self.machine.live
            if idle:
                self.machine.engine.batch.cache.clear()
            await send_body(send, 200 if idle else 400, _FLUSHED if idle else b"")
        elif path in REPORTS:
            await send_json(send, 405, {"detail": "Method Not Allowed"})
        else:
            await send_json(send, 404, {"detail": "Not Found"})


async def read_all(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def json_object(body: bytes) -> dict[str, Any]:
    if not body:
        raise invalid_body(wrong_type("missing", (), "Field required", None))
    parsed = orjson.loads(body)
    if not isinstance(parsed, dict):
        raise invalid_body(wrong_type("dict_type", (), "Input should be a dictionary", parsed))
    return parsed
