"""Local copies of the scripts that pages otherwise load from a CDN: lock, folders, check.

Owns which script is wanted (`assets.lock.json`) and where a copy is looked for. Invariants:
nothing is served or kept that has not the size and the digest of the lock; a copy appears in its
folder whole or not at all. Nothing here asks the network.
"""

import json
import os
import tarfile
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha384
from pathlib import Path

from app.errors import InputError, NotFoundError

_LOCK = Path(__file__).with_name("assets.lock.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A script of somebody else: the exact version, and the size and digest that it must have.

    `name` is what a copy is called; `urls` are where it can be had, the page's own first; `file` is
    its path in the npm package.
    """

    package: str
    version: str
    file: str
    name: str
    n_bytes: int
    integrity: str
    licence: str
    urls: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.package} {self.version}"

    def fault(self, body: bytes) -> str | None:
        """Return what is wrong with these bytes, None if they are the script.

        >>> pinned()[0].fault(b"x")
        'has 1 byte, not 37,448'
        """
        if len(body) != self.n_bytes:
            return f"has {len(body):,} byte{'' if len(body) == 1 else 's'}, not {self.n_bytes:,}"
        digest = f"sha384-{b64encode(sha384(body).digest()).decode()}"
        return None if digest == self.integrity else f"has the digest {digest}, not the lock's"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A file found where a copy is looked for. `body` is None where it was refused: see `fault`."""

    path: Path
    body: bytes | None
    fault: str = ""


@cache
def pinned() -> tuple[Pinned, ...]:
    """Return the scripts of the lock; the first is htmx."""
    lock = json.loads(_LOCK.read_text())
    return tuple(
        Pinned(n_bytes=each.pop("bytes"), urls=tuple(each.pop("urls")), **each)
        for each in lock.values()
    )


def cache_folder() -> Path:
    """Return the folder of a person's own copies: `$XDG_CACHE_HOME/longwatch/assets`."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".cache"
    return base / "longwatch" / "assets"


def folders(offline_assets: Path | None) -> tuple[Path, ...]:
    """Return where copies are looked for, in order: the folder that is set, then the cache."""
    return tuple(filter(None, (offline_assets, cache_folder())))


def copies_of(wanted: Pinned, places: Sequence[Path]) -> list[Copy]:
    """Return every file of that name, in order, each read and checked now."""
    found = []
    for place in places:
        path = place / wanted.name
        try:
            body = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            found.append(Copy(path=path, body=None, fault=f"cannot be read: {error.strerror}"))
            continue
        fault = wanted.fault(body)
        found.append(Copy(path=path, body=None if fault else body, fault=fault or ""))
    return found


def keep(wanted: Pinned, body: bytes, place: Path, source: str) -> Path:
    """Write a copy, whole or not at all. InputError for other bytes than the lock's, or no room."""
    fault = wanted.fault(body)
    if fault:
        raise InputError(
            f"{source} {fault}",
            hint=f"nothing was kept; what is wanted is {wanted.file} of npm's"
            f" {wanted.package}@{wanted.version}",
        )
    path = place / wanted.name
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place, prefix=".part-", delete=False) as part:
            try:
                part.write(body)
                part.flush()
                os.fsync(part.fileno())
                os.fchmod(part.fileno(), 0o644)
                Path(part.name).replace(path)
            except BaseException:
                Path(part.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}",
            hint="name a folder of yours with --offline-assets",
        ) from error
    return path


def read_from(wanted: Pinned, source: Path) -> tuple[bytes, str]:
    """Return the script's bytes and where they stood: a .js, an npm .tgz, or a folder of either.

    Of a folder, the copy, the unpacked package and the archive are looked for, in this order.
    """
    if source.is_dir():
        archive = f"{wanted.package.replace('/', '-').lstrip('@')}-{wanted.version}.tgz"
        inside = (wanted.name, wanted.file, f"package/{wanted.file}", Path(wanted.file).name)
        for each in (*inside, archive):
            if (source / each).is_file():
                return read_from(wanted, source / each)
        raise NotFoundError(
            f"{source} holds no {wanted.label}",
            hint=f"it is {archive}, made by: npm pack {wanted.package}@{wanted.version}",
        )
    if source.exists() and not source.is_file():
        raise InputError(f"{source} is neither a file nor a folder")
    try:
        if source.suffix in (".tgz", ".gz", ".tar"):
            return _unpacked(wanted, source), f"{wanted.file} in {source}"
        with source.open("rb") as file:
            return file.read(wanted.n_bytes + 1), str(source)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise InputError(
            f"cannot read {source}: {getattr(error, 'strerror', None) or error}"
        ) from error


def _unpacked(wanted: Pinned, archive: Path) -> bytes:
    """Read one member; nothing is ever unpacked to a path that the archive names."""
    with tarfile.open(archive) as packed:
        try:
            content = packed.extractfile(f"package/{wanted.file}")
        except KeyError:
            content = None
        if content is None:
            raise NotFoundError(
                f"{archive} holds no package/{wanted.file}",
                hint=f"make it with: npm pack {wanted.package}@{wanted.version}",
            )
        return content.read(wanted.n_bytes + 1)
