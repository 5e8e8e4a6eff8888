"""The bearer tokens of a home: `<home>/token`, made once, and `<home>/view-token`, made on demand.

Readable by their owner only. A token that was set (`LONGWATCH_TOKEN`, `LONGWATCH_VIEW_TOKEN`) takes
a file's place; its form is checked where it is read. Invariants: two processes that start at once
agree on one token; the token is in no log, no address and no message.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from app.errors import InputError, StorageError
from app.settings import LEAST_TOKEN_CHARS

TOKEN_NAME = "token"  # noqa: S105 - the name of a file
VIEW_TOKEN_NAME = "view-token"  # noqa: S105 - likewise


def home_token(home: Path, given: str | None = None) -> str:
    """Return the token of the home, made now if there is none; a given one takes its place."""
    if given:
        return given
    found = read_token(home)
    if found:
        return found
    path, token = home / TOKEN_NAME, secrets.token_urlsafe(32)
    try:
        fresh = _written(home, TOKEN_NAME, token)
        if path.exists():  # empty or cut short: of no use to anybody
            fresh.replace(path)
        else:
            with suppress(FileExistsError):  # another process was faster: its token counts
                path.hardlink_to(fresh)
        fresh.unlink(missing_ok=True)
    except OSError as error:
        raise _not_written(path, error) from error
    return read_token(home) or token


def view_token(home: Path, token: str, given: str | None = None) -> str | None:
    """Return the token of those who may only look, None if there is none.

    Raises InputError where it is the operators' token, which would make operators of them.
    """
    found = given or read_token(home, VIEW_TOKEN_NAME)
    if found is not None and secrets.compare_digest(found.encode(), token.encode()):
        raise InputError(
            "the view token is the same as the token: who may only look could change everything",
            hint="set another LONGWATCH_VIEW_TOKEN, or run longwatch token rotate --view",
        )
    return found


def rotate(home: Path, name: str) -> Path:
    """Put a new token in the place of a home's; return the file. The old one opens nothing more."""
    path = home / name
    try:
        _written(home, name, secrets.token_urlsafe(32)).replace(path)
    except OSError as error:
        raise _not_written(path, error) from error
    return path


def read_token(home: Path, name: str = TOKEN_NAME) -> str | None:
    """Return a token of the home, None if there is none that could be used."""
    path = home / name
    try:
        token = path.read_text().strip()
        if token and path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"cannot read {path}: {error.strerror}", hint="it belongs to who runs the service"
        ) from error
    return token if len(token) >= LEAST_TOKEN_CHARS else None


def _written(home: Path, name: str, token: str) -> Path:
    """Write a token beside its place, for its owner only."""
    fresh = home / f".{name}-{os.getpid()}"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")
    return fresh


def _not_written(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"cannot write {path}: {error.strerror}", hint="check the rights of the home folder"
    )
