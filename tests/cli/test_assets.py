"""`longwatch assets`: status, fetch from real addresses, import; a wrong copy is never kept."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from app.cli.assets import fetch_one
from app.errors import InputError
from app.web.offline import Pinned, pinned, read_from
from tests.cli.conftest import Longwatch
from tests.web.pinning import FIRST, pin


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Pinned]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield pin(monkeypatch, tmp_path)
    pinned.cache_clear()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[str]:
    """Serve a folder: right.js is the script, wrong.js another of its size, long.js a long one."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "right.js").write_bytes(FIRST)
    (folder / "wrong.js").write_bytes(b"x" * len(FIRST))
    (folder / "long.js").write_bytes(b"x" * 1_000_000)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_next_address_is_asked_when_one_has_other_bytes_or_none(
    wanted: Pinned, shop: str, tmp_path: Path
) -> None:
    names = ("absent.js", "wrong.js", "long.js", "right.js")
    urls = tuple(f"{shop}/{name}" for name in names)
    path = fetch_one(replace(wanted, urls=urls), tmp_path / "copies")
    assert path.read_bytes() == FIRST
    with pytest.raises(InputError) as refused:
        fetch_one(replace(wanted, urls=urls[:3]), tmp_path / "none")
    told = str(refused.value)
    assert f"{shop}/absent.js answers 404" in told
    assert f"{shop}/wrong.js has the digest" in told
    assert f"{shop}/long.js has " in told
    assert "npm pack" in told
    assert not (tmp_path / "none").exists()


def test_import_and_status(
    wanted: Pinned, longwatch: Longwatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = longwatch("assets", "status")
    assert told.code == 0
    assert "no copy in" in told.out
    assert "pages: the CDN alone" in told.out
    monkeypatch.setenv("LONGWATCH_ASSETS", "local")
    assert longwatch("assets", "status").code == 1
    source = tmp_path / "script.js"
    source.write_bytes(FIRST)
    told = longwatch("assets", "import", str(source))
    kept = tmp_path / "cache/longwatch/assets" / wanted.name
    assert (told.code, str(kept) in told.out, kept.read_bytes()) == (0, True, FIRST)
    told = longwatch("assets", "status")
    assert (told.code, "the copy, never the CDN" in told.out) == (0, True)
    kept.write_bytes(b"x")
    told = longwatch("assets", "status")
    assert (told.code, "1 byte, not" in told.out) == (1, True)


def test_a_wrong_file_is_refused_by_name(
    wanted: Pinned, longwatch: Longwatch, tmp_path: Path
) -> None:
    source = tmp_path / "script.js"
    source.write_bytes(FIRST + b"\n")
    told = longwatch("assets", "import", str(source), "--offline-assets", str(tmp_path / "set"))
    assert told.code == 1
    assert f"{source} has" in told.error
    assert wanted.file in told.error
    assert not (tmp_path / "set").exists()


def test_a_mode_that_is_none_is_refused(
    longwatch: Longwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGWATCH_ASSETS", "remote")
    told = longwatch("assets", "status")
    assert told.code == 1
    assert "LONGWATCH_ASSETS" in told.error
    assert "'remote'" in told.error


def test_what_is_neither_file_nor_folder_is_refused_at_once(wanted: Pinned, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.js"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_from(wanted, pipe)
