"""The bearer token of a home: `<home>/token`, made once, readable by its owner only.

Invariants: two processes that start at once agree on one token; the token is in no log, no
address and no message.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from app.errors import StorageError

_NAME = "token"
_LEAST_LENGTH = 16


def home_token(home: Path, given: str | None = None) -> str:
    """Return the token of the home, made now if there is none; a given one takes its place."""
    if given:
        return given
    path = home / _NAME
    found = read_token(home)
    if found:
        return found
    token = secrets.token_urlsafe(32)
    fresh = home / f".{_NAME}-{os.getpid()}"
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token + "\n")
        if path.exists():  # empty or cut short: of no use to anybody
            fresh.replace(path)
        else:
            with suppress(FileExistsError):  # another process was faster: its token counts
                path.hardlink_to(fresh)
        fresh.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}", hint="check the rights of the home folder"
        ) from error
    return read_token(home) or token


def read_token(home: Path) -> str | None:
    """Return the home's token, None if there is none that could be used."""
    path = home / _NAME
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
    return token if len(token) >= _LEAST_LENGTH else None
