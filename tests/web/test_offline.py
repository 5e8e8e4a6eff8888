"""Local copies of htmx: what is taken, what is refused, what is served, and what a page names."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from app.errors import InputError, NotFoundError
from app.ledger.migrate import bundled
from app.web.assets import Offering, asset_routes, lean, offering, own_assets
from app.web.offline import Pinned, copies_of, keep, pinned, read_from
from tests.web.pinning import FIRST, pin


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Pinned]:
    """Let a small script of ours be the one of the lock; the cache is the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield pin(monkeypatch, tmp_path)
    pinned.cache_clear()


def archive(path: Path, wanted: Pinned, body: bytes) -> Path:
    script = path.parent / "script"
    script.write_bytes(body)
    with tarfile.open(path, "w:gz") as packed:
        packed.add(script, f"package/{wanted.file}")
    script.unlink()
    return path


def test_a_script_an_archive_and_a_folder_are_taken(wanted: Pinned, tmp_path: Path) -> None:
    script = tmp_path / "any.js"
    script.write_bytes(FIRST)
    packed = archive(tmp_path / f"{wanted.package}-{wanted.version}.tgz", wanted, FIRST)
    for source in (script, packed, tmp_path):
        assert read_from(wanted, source)[0] == FIRST
    path = keep(wanted, FIRST, tmp_path / "new" / "folder", "here")
    assert path.read_bytes() == FIRST
    assert [each.name for each in path.parent.iterdir()] == [wanted.name]


@pytest.mark.parametrize(
    ("body", "said"), [(FIRST + b" ", "bytes, not"), (FIRST[:-1] + b"#", "has the digest sha384-")]
)
def test_other_bytes_are_refused_and_the_copy_that_was_there_stays(
    wanted: Pinned, tmp_path: Path, body: bytes, said: str
) -> None:
    kept = keep(wanted, FIRST, tmp_path, "here")
    with pytest.raises(InputError, match=f"there .*{said}.*Nothing was kept"):
        keep(wanted, body, tmp_path, "there")
    assert kept.read_bytes() == FIRST


def test_what_is_no_archive_or_holds_nothing_is_named(wanted: Pinned, tmp_path: Path) -> None:
    broken = tmp_path / "a.tgz"
    broken.write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"cannot read .*a\.tgz"):
        read_from(wanted, broken)
    with pytest.raises(InputError, match=r"cannot read .*nothing\.js: No such file"):
        read_from(wanted, tmp_path / "nothing.js")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(NotFoundError, match=r"holds no htmx\.org .*npm pack"):
        read_from(wanted, empty)


def test_the_folder_that_is_set_comes_before_the_cache_and_a_wrong_copy_is_named(
    wanted: Pinned, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert offering("cdn", tmp_path / "set").copy is None
    cached = keep(wanted, FIRST, tmp_path / "cache/longwatch/assets", "here")
    assert offering("cdn", tmp_path / "set").copy == FIRST
    (tmp_path / "set").mkdir()
    wrong = tmp_path / "set" / wanted.name
    wrong.write_bytes(b"x" * len(FIRST))
    assert offering("cdn", tmp_path / "set").copy == FIRST, "the good one of the cache"
    assert f"{wrong} has the digest" in caplog.text
    assert "it is not served" in caplog.text
    assert [each.path for each in copies_of(wanted, (wrong.parent, cached.parent))] == [
        wrong,
        cached,
    ]
    cached.unlink()
    assert offering("local", tmp_path / "set").copy is None
    assert "basic mode" in caplog.text


async def test_only_names_of_the_lock_are_served_and_for_ever(wanted: Pinned) -> None:
    app = FastAPI()
    app.include_router(asset_routes(Offering(copy=FIRST)))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://here") as client:
        found = await client.get(f"/assets/{wanted.name}")
        assert (found.status_code, found.content) == (200, FIRST)
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["content-type"].startswith("text/javascript")
        with pytest.raises(NotFoundError):
            await client.get("/assets/assets.lock.json")


@pytest.mark.parametrize(
    ("mode", "has_copy", "first", "second"),
    [
        ("cdn", False, "cdn", ""),
        ("cdn", True, "cdn", "copy"),
        ("local", True, "copy", ""),
        ("local", False, None, ""),
        ("off", True, None, ""),
    ],
)
def test_what_a_page_names_first_and_second(
    wanted: Pinned, mode: str, has_copy: bool, first: str | None, second: str
) -> None:
    offered = Offering(mode=mode, copy=FIRST if has_copy else None)  # type: ignore[arg-type]  # one of the three
    places = {"cdn": wanted.urls[0], "copy": f"/assets/{wanted.name}", "": ""}
    script = offered.script(None)
    assert (script and script.url) == (places[first] if first else None)
    assert script is None or script.second == places[second]
    assert offered.with_cdn == (mode == "cdn")


def test_our_script_has_no_string_over_several_lines_so_that_it_may_be_joined_lean() -> None:
    folder = bundled("static")
    for path in (folder / "boot.js", *(folder / "app").glob("*.js")):
        for line in lean(path.read_bytes()).splitlines():
            assert line.count(b"`") % 2 == 0, f"{path.name}: {line.decode()}"
            assert not line.endswith(b"\\")
            assert b"/*" not in line or b"*/" in line
    assert b"\n//" not in own_assets().files[own_assets().script.removeprefix("/static/")][0]
