"""Our own static files under addresses that hold their digest, and the one script from elsewhere.

Owns `/static/…`: only files that were read at the start are served, by an exact name, so no path
can lead out; and `/assets/…`: names of the lock, for which a good copy was found at the start.
The script and the style are many files each, joined in the order of their names.
Invariant: an address that is served once means the same bytes for ever.
"""

import logging
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.errors import NotFoundError
from app.ledger.migrate import bundled
from app.settings import AssetsMode
from app.web.offline import copies_of, folders, pinned

logger = logging.getLogger("longwatch")

_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# one scope for all of the script's files, none for the page
_OPENING, _CLOSING = b"(() => {\n'use strict';\n", b"})();\n"
_FOR_EVER = "public, max-age=31536000, immutable"
_LOCAL_COOKIE = "assets"
# a whole line that says something to us alone; what stands inside a line is left as it is
_COMMENT_LINE = re.compile(rb"^[ \t]*//.*\n?", re.MULTILINE)
_STYLE_COMMENT = re.compile(rb"/\*.*?\*/\n?", re.DOTALL)
_INDENTATION = re.compile(rb"^[ \t]+", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A script of others as a page names it: an address, and the digest that its bytes must have.

    `second` is where it is asked for when the first does not come, "" for nowhere.
    """

    url: str
    integrity: str
    second: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """The addresses of our own files, and their content by name.

    `version` is another one whenever any of them is: a page that was made with an older one begins
    anew.
    """

    style: str
    boot: str
    script: str
    icon: str
    alert_icon: str
    version: str
    files: dict[str, tuple[bytes, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """Where pages find htmx. `copy` are the bytes of a local one, None where there is none."""

    mode: AssetsMode = "cdn"
    copy: bytes | None = None

    @property
    def with_cdn(self) -> bool:
        """Return whether a page may name the CDN at all."""
        return self.mode == "cdn"

    def script(self, request: Request | None) -> Script | None:
        """Return what a page names, None for no htmx; one whose CDN failed names the copy first."""
        htmx_ = pinned()[0]
        local = f"/assets/{htmx_.name}" if self.copy is not None and self.mode != "off" else ""
        if not self.with_cdn:
            return Script(url=local, integrity=htmx_.integrity) if local else None
        if local and request is not None and request.cookies.get(_LOCAL_COOKIE) == "local":
            return Script(url=local, integrity=htmx_.integrity)
        return Script(url=htmx_.urls[0], integrity=htmx_.integrity, second=local)


CDN_ONLY = Offering()


def offering(mode: AssetsMode, offline_assets: Path | None) -> Offering:
    """Look for a local copy, once, at the start; one with other bytes is named in the log."""
    if mode == "off":
        return Offering(mode="off")
    good = None
    for each in copies_of(pinned()[0], folders(offline_assets)):
        if each.fault:
            logger.warning("%s %s: it is not served", each.path, each.fault)
        good = good or each.body
    if mode == "local" and good is None:
        logger.warning(
            "assets = local and there is no copy of %s: pages are in basic mode, their buttons"
            " reload the page. longwatch assets fetch, or assets import, brings one",
            pinned()[0].label,
        )
    return Offering(mode=mode, copy=good)


@cache
def own_assets() -> Assets:
    """Read the static files, once."""
    folder = bundled("static")
    bodies = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in _KINDS}
    bodies["boot.js"] = lean(bodies["boot.js"])
    bodies["app.js"] = _OPENING + lean(_joined(folder / "app", "*.js")) + _CLOSING
    bodies["app.css"] = lean_style(_joined(folder / "style", "*.css"))
    files: dict[str, tuple[bytes, str]] = {}
    addresses: dict[str, str] = {}
    for name, body in bodies.items():
        stem, suffix = name.rsplit(".", 1)
        dated = f"{stem}.{sha256(body).hexdigest()[:12]}.{suffix}"
        files[dated] = (body, _KINDS[f".{suffix}"])
        addresses[name] = f"/static/{dated}"
    return Assets(
        style=addresses["app.css"],
        boot=addresses["boot.js"],
        script=addresses["app.js"],
        icon=addresses["icon.svg"],
        alert_icon=addresses["icon-alert.svg"],
        version=sha256(" ".join(sorted(files)).encode()).hexdigest()[:8],
        files=files,
    )


def _joined(folder: Path, pattern: str) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.glob(pattern)))


def lean_style(style: bytes) -> bytes:
    r"""Return a style of ours without its comments and its indentation.

    >>> lean_style(b"/* head */\n@media print {\n  a { top: 0; }\n}\n")
    b'@media print {\na { top: 0; }\n}\n'
    """
    return _INDENTATION.sub(b"", _STYLE_COMMENT.sub(b"", style))


def lean(script: bytes) -> bytes:
    r"""Return a script of ours without its comment lines and its indentation.

    Safe because no string of ours goes over a line's end: a test holds that.

    >>> lean(b"// why\nif (a) {\n  b('// c');  // d\n}\n")
    b"if (a) {\nb('// c');  // d\n}\n"
    """
    return _INDENTATION.sub(b"", _COMMENT_LINE.sub(b"", script))


@cache
def htmx() -> Script:
    """Return where htmx comes from. Its licence and size stand in the lock file."""
    return Script(url=pinned()[0].urls[0], integrity=pinned()[0].integrity)


def asset_routes(offered: Offering = CDN_ONLY) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        found = own_assets().files.get(name)
        if found is None:
            raise NotFoundError("there is no such file", hint="reload the page")
        body, kind = found
        return Response(body, media_type=kind, headers={"cache-control": _FOR_EVER})

    @router.get("/assets/{name}")
    async def local_copy(name: str) -> Response:
        if offered.copy is None or name != pinned()[0].name:
            raise NotFoundError(
                "there is no such file", hint="longwatch assets status says which there are"
            )
        headers = {"cache-control": _FOR_EVER}
        return Response(offered.copy, media_type=_KINDS[".js"], headers=headers)

    return router
