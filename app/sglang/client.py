"""One server over HTTP: generate, abort, and the routes that tell facts. Raises only our errors.

Two connection pools, so that a poll never queues behind a thousand generate calls (`transport.py`).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import aiohttp
import httpx

from app.core.types import AttemptEnd, EndKind, ServerFacts
from app.errors import ServerAwayError, ServerError
from app.sglang.bodies import message_of, parse_json
from app.sglang.protocol import facts_from
from app.sglang.stream import Answer
from app.sglang.transport import in_words, is_refusal, make_transport

CONNECT_TIMEOUT_S = 10.0
CONTROL_TIMEOUT_S = 10.0
_END_WAIT_S = 1.0
_MAX_ERROR_BYTES = 65_536
_REFUSALS_OF_INPUT = frozenset({400, 413, 422})
_GENERATE_LIMITS = {"timeout": {"connect": CONNECT_TIMEOUT_S}}  # and no limit on reading
_HEADERS = {
    "accept": "*/*",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "longwatch",
}


class ServerClient:
    """A server at one address. Use as an async context manager."""

    def __init__(self, url: str, *, api_key: str | None = None) -> None:
        self.url = url.rstrip("/")
        headers = dict(_HEADERS)
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        self._generate_url = httpx.URL(f"{self.url}/generate")  # parsed once, not per request
        self._generate_headers = httpx.Headers({**headers, "host": _host(self._generate_url)})
        self._generate = make_transport()
        self._control = httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(CONTROL_TIMEOUT_S),
            transport=make_transport(),
            trust_env=False,
        )

    async def __aenter__(self) -> "ServerClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._generate.aclose()
        await self._control.aclose()

    async def generate(self, body: bytes, answer: Answer, timeout_s: float | None) -> AttemptEnd:
        """Send one request and read it into `answer` to its end. Never raises but on cancel."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._read(body, answer)
        except TimeoutError as error:
            if timeout_s is None:  # the operating system's: the peer is gone
                return AttemptEnd(kind=EndKind.CUT, ids=answer.ids, message=in_words(error))
            message = f"no end within request_timeout_s = {timeout_s:g} s"
            return AttemptEnd(kind=EndKind.TIMEOUT, ids=answer.ids, message=message)
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            kind = EndKind.REFUSED if is_refusal(error) else EndKind.CUT
            return AttemptEnd(kind=kind, ids=answer.ids, message=in_words(error))

    async def _read(self, body: bytes, answer: Answer) -> AttemptEnd:
        # The transport itself, without the client's cookies, redirects and auth: a third less CPU.
        request = httpx.Request(
            "POST",
            self._generate_url,
            headers=self._generate_headers,
            content=body,
            extensions=_GENERATE_LIMITS,
        )
        response = await self._generate.handle_async_request(request)
        try:
            if response.status_code != httpx.codes.OK:
                return await _refused(response)
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                await _read_events(_chunks(response), answer)
            else:
                answer.whole(b"".join([chunk async for chunk in _chunks(response)]))
        finally:
            await response.aclose()
        return answer.end()

    async def abort(self, rid: str) -> None:
        """Ask the server to end one request; it answers 200 whether it knows the rid or not."""
        try:
            await self._control.post("/abort_request", json={"rid": rid}, timeout=1.5)
        except (httpx.TransportError, aiohttp.ClientError, OSError):
            return  # a server that is gone has nothing to abort; the closed stream says the same

    async def facts(self) -> ServerFacts:
        """Return what the server says of itself; new route names first, then the old ones."""
        info = await self._first_of("/server_info", "/get_server_info")
        model = await self._first_of("/model_info", "/get_model_info")
        return facts_from(info, model, await self._first_of("/v1/models"))

    async def _first_of(self, *paths: str) -> Mapping[str, object] | None:
        for path in paths:
            response = await self._get(path)
            if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
                raise ServerError(
                    f"{self.url} refuses {path} ({response.status_code})",
                    hint="Set the server's key in the environment: LONGWATCH_API_KEY",
                )
            if response.status_code == httpx.codes.OK:
                content = _object(response.content)
                if content is not None:
                    return content
        return None

    async def health(self) -> int:
        """Return the status of /health. It may take seconds: the server probes itself."""
        return (await self._get("/health", timeout_s=25.0)).status_code

    async def is_alive(self) -> bool:
        """Return whether the server takes connections and answers HTTP at all, quickly asked."""
        try:
            await self._get("/model_info", timeout_s=5.0)
        except ServerAwayError:
            return False
        return True

    async def tokenize(self, body: Mapping[str, object]) -> list[int]:
        """Return the ids of `{"prompt": …}` or `{"messages": […], …}`.

        Raises ServerError with the template's or tokenizer's words if it refuses this input, and
        ServerAwayError for anything that says nothing of the input: 503, 500, 401, no such route.
        """
        response = await self._post("/tokenize", body)
        if response.status_code in _REFUSALS_OF_INPUT:
            raise ServerError(message_of(response.content))
        content = _object(response.content) if response.status_code == httpx.codes.OK else None
        tokens = content.get("tokens") if content else None
        if not isinstance(tokens, list):
            raise ServerAwayError(
                f"{self.url} answers /tokenize with {response.status_code}"
                f" ({message_of(response.content)})",
                hint="Check that the server is healthy, and SGLang 0.5.3 or newer",
            )
        return tokens

    async def tokenize_many(self, texts: Sequence[str]) -> list[list[int]] | None:
        """Return the ids of texts without a start token, None if the server takes no list.

        Source: SGLang `TokenizeRequest.prompt`, a text or a list of texts.
        """
        lists: list[object] = [
            *await self.tokenize({"prompt": list(texts), "add_special_tokens": False})
        ]
        ids = [each for each in lists if isinstance(each, list)]
        return ids if len(ids) == len(lists) == len(texts) else None

    async def detokenize(self, ids: list[int]) -> str | None:
        """Return the text of ids, None where the server cannot tell."""
        try:
            response = await self._post("/detokenize", {"tokens": ids})
        except ServerAwayError:
            return None
        content = _object(response.content) if response.status_code == httpx.codes.OK else None
        text = content.get("text") if content else None
        return text if isinstance(text, str) else None

    async def _get(self, path: str, timeout_s: float = CONTROL_TIMEOUT_S) -> httpx.Response:
        return await self._ask("GET", path, None, timeout_s)

    async def _post(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        return await self._ask("POST", path, body, 120.0)

    async def _ask(
        self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float
    ) -> httpx.Response:
        try:
            return await self._control.request(method, path, json=body, timeout=timeout_s)
        except (httpx.TransportError, aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerAwayError(
                f"{self.url} does not answer ({in_words(error)})",
                hint="Check the address and that the server runs",
            ) from error


def _host(url: httpx.URL) -> str:
    return url.netloc.decode("ascii")


def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return the body as it comes, undecoded: nothing was accepted but identity."""
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise ServerError("the transport gave a body that cannot be awaited")
    return aiter(response.stream)


async def _read_events(chunks: AsyncIterator[bytes], answer: Answer) -> None:
    async for chunk in chunks:
        if answer.feed(chunk):
            break
    if answer.is_complete:
        await _read_to_the_end(chunks)


async def _read_to_the_end(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows a complete answer, so that its connection can serve the next request.

    The answer stands already: whatever happens here takes nothing from it.
    """
    with contextlib.suppress(TimeoutError, httpx.TransportError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(_END_WAIT_S):
            async for _ in chunks:
                pass


async def _refused(response: httpx.Response) -> AttemptEnd:
    body = bytearray()
    async for chunk in _chunks(response):
        body += chunk
        if len(body) > _MAX_ERROR_BYTES:
            break
    status = response.status_code
    busy = status in (httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.TOO_MANY_REQUESTS)
    return AttemptEnd(
        kind=EndKind.BUSY if busy else EndKind.ERROR,
        status=status,
        message=message_of(bytes(body)),
        retry_after_s=_seconds(response.headers.get("retry-after")),
    )


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None  # a date; our own delay serves


def _object(body: bytes) -> Mapping[str, object] | None:
    try:
        content = parse_json(body)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
