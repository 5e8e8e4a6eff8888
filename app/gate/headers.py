"""The headers that every answer carries: what a browser may do with it.

Answers for machines may load nothing at all. Pages load from here, and scripts from the CDN
besides, unless the assets are local. Nothing may be framed, guessed at or kept.
"""

from app.gate.asking import Message, Send, is_for_machines

RawHeaders = list[tuple[bytes, bytes]]
CDN = "https://cdn.jsdelivr.net"
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_MACHINE = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
_KEEPING = (b"cache-control", b"no-store")


def safe_headers(path: str, given: RawHeaders, *, with_cdn: bool = True) -> RawHeaders:
    """Return the headers of an answer with ours added. Only cache-control may be its own."""
    content_type = next((value for name, value in given if name.lower() == b"content-type"), b"")
    is_page = not (is_for_machines(path) or content_type.startswith(b"application/json"))
    ours = (*_ALWAYS, *(_page_headers(with_cdn=with_cdn) if is_page else _MACHINE))
    names = {name for name, _ in ours}
    kept = [(name, value) for name, value in given if name.lower() not in names]
    if not any(name.lower() == b"cache-control" for name, _ in kept):
        kept.append(_KEEPING)
    return [*kept, *ours]


def _page_headers(*, with_cdn: bool) -> tuple[tuple[bytes, bytes], ...]:
    scripts = f"script-src 'self' {CDN}" if with_cdn else "script-src 'self'"
    policy = (
        f"default-src 'self'; {scripts}; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return ((b"content-security-policy", policy.encode()), (b"referrer-policy", b"same-origin"))


def sending_safely(send: Send, path: str, *, with_cdn: bool) -> Send:
    """Return a `send` that adds the headers to the answer of a path."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = safe_headers(path, list(message.get("headers", ())), with_cdn=with_cdn)
            message = {**message, "headers": headers}
        await send(message)

    return sending
