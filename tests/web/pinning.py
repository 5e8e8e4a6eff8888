"""A lock that pins a small script of our own, so that tests of copies need no registry."""

import json
from base64 import b64encode
from hashlib import sha384
from pathlib import Path

import pytest

from app.web import offline
from app.web.offline import Pinned, pinned

FIRST = b"window.first = 1;\n"


def pin(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Pinned:
    """Let the lock be another one until the test ends; return the script that it pins."""
    (one,) = json.loads(offline._LOCK.read_text()).values()
    digest = b64encode(sha384(FIRST).digest()).decode()
    one |= {"bytes": len(FIRST), "integrity": f"sha384-{digest}"}
    path = folder / "other.lock.json"
    path.write_text(json.dumps({"htmx": one}))
    monkeypatch.setattr(offline, "_LOCK", path)
    pinned.cache_clear()
    return pinned()[0]
