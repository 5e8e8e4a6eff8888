"""Short questions to one server: does it answer at all, what are its figures, what is it.

Owns a connection pool of its own, so that a look never queues behind generate calls. Invariants:
every question ends within its time, however slowly an answer drips; redirects are not followed;
no more than 8 MB are read; nothing but the route's own words, cut short, goes into a message.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
import httpx

from app.core.format import one_line
from app.core.types import ServerFacts
from app.errors import ServerAwayError, ServerError
from app.sglang.bodies import message_of, parse_json
from app.sglang.protocol import facts_from
from app.sglang.transport import in_words, is_refusal, make_transport

MAX_BYTES = 8_000_000
SHOWN_CHARACTERS = 120
_HEADERS = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "longwatch"}
_KEY_HINT = "set the server's key in the environment: LONGWATCH_API_KEY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP answer of any status; an answer that is too long has no body."""

    path: str
    status: int
    body: bytes = b""
    is_too_long: bool = False

    @property
    def is_ok(self) -> bool:
        return self.status == httpx.codes.OK and not self.is_too_long

    @property
    def is_missing(self) -> bool:
        return self.status in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED)

    @property
    def trouble(self) -> str:
        """Say why this answer is of no use, in one short sentence."""
        if self.is_too_long:
            return f"{self.path} answers with more than {MAX_BYTES // 1_000_000} MB"
        if self.status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            return f"{self.path} refuses ({self.status}); {_KEY_HINT}"
        if httpx.codes.is_redirect(self.status):
            return f"{self.path} answers with a redirect ({self.status}), which is not followed"
        words = one_line(message_of(self.body)).strip()
        said = f" ({_cut(words)})" if words and not self.is_missing else ""
        return f"{self.path} answers {self.status}{said}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No HTTP answer. `is_refused`: not even a connection was made."""

    reason: str
    is_refused: bool = False


class ServerProbe:
    """Questions to the server at one address; close it when it is not needed any more."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self.url = url.rstrip("/")
        headers = dict(_HEADERS)
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=None,  # noqa: S113 - one time for the whole question, below
            transport=make_transport(),
            trust_env=False,
            follow_redirects=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, path: str, timeout_s: float) -> Reply | Silence:
        """Return the answer to one GET, read to its end within the time. Never raises."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._read(path)
        except TimeoutError:
            return Silence(reason=f"no answer within {timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError) as error:
            return Silence(reason=_cut(one_line(in_words(error))), is_refused=is_refusal(error))

    async def _read(self, path: str) -> Reply:
        async with self._client.stream("GET", path) as response:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_BYTES:
                    return Reply(path=path, status=response.status_code, is_too_long=True)
            return Reply(path=path, status=response.status_code, body=bytes(body))

    async def facts(self, timeout_s: float) -> ServerFacts | None:
        """Return what the server says of itself, None if it has no such routes.

        Raises ServerError if it refuses or fails, ServerAwayError if it is silent: a busy scheduler
        answers late, a hung one never.
        """
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(self._first_of(timeout_s, *paths))
                for paths in (
                    ("/server_info", "/get_server_info"),
                    ("/model_info", "/get_model_info"),
                    ("/v1/models",),
                )
            ]
        answers: list[Mapping[str, object] | None] = []
        for task in asked:
            answer = task.result()
            if isinstance(answer, ServerError):
                raise answer
            answers.append(answer)
        return facts_from(*answers) if answers[0] or answers[1] else None

    async def _first_of(
        self, timeout_s: float, *paths: str
    ) -> Mapping[str, object] | ServerError | None:
        try:
            async with asyncio.timeout(timeout_s):
                for path in paths:
                    reply = await self.ask(path, timeout_s)
                    if isinstance(reply, Silence):
                        return ServerAwayError(f"{path}: {reply.reason}")
                    if not reply.is_missing:
                        return _object(reply) if reply.is_ok else ServerError(reply.trouble)
        except TimeoutError:
            return ServerAwayError(f"{paths[0]}: no answer within {timeout_s:g} s")
        return None


def _object(reply: Reply) -> Mapping[str, object] | ServerError:
    try:
        content = parse_json(reply.body)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else ServerError(f"{reply.path} is no JSON object")


def _cut(words: str) -> str:
    return words if len(words) <= SHOWN_CHARACTERS else words[: SHOWN_CHARACTERS - 1] + "…"
