"""Sessions that were logged out of, until they would have expired by themselves.

Owns `<home>/ended-sessions`: a line of expiry and digest for each, so that a start of the service
brings none of them back. Invariants: what stands there opens nothing by itself; the file cannot
grow without bound, for only who has a session can end one, and expired ones are left out.
"""

import logging
import os
from datetime import datetime
from hashlib import sha256
from pathlib import Path

logger = logging.getLogger("longwatch")
_NAME = "ended-sessions"
MAX_ENDED = 10_000
_N_WORDS = 2


class Ended:
    """See the module. Without a home it remembers as long as it lives."""

    def __init__(self, home: Path | None = None) -> None:
        self._path = None if home is None else home / _NAME
        self._expires: dict[str, int] = {}
        if self._path is not None and self._path.exists():
            self._expires = _read(self._path)

    def holds(self, seal: str) -> bool:
        """Return whether the session of that seal was ended."""
        return _digest(seal) in self._expires

    def add(self, seal: str, expires: int, now: datetime) -> None:
        """End the session of a seal; what cannot be written is ended until the next start."""
        lasting = {key: end for key, end in self._expires.items() if end > now.timestamp()}
        lasting[_digest(seal)] = expires
        newest = sorted(lasting.items(), key=lambda each: each[1])[-MAX_ENDED:]
        self._expires = dict(newest)
        if self._path is None:
            return
        fresh = self._path.with_name(f".{_NAME}-{os.getpid()}")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.writelines(f"{end} {key}\n" for key, end in newest)
            fresh.replace(self._path)
        except OSError as error:
            logger.warning("the end of a session is not stored: %s", error.strerror)


def _read(path: Path) -> dict[str, int]:
    """Return what can be read: a line cut short ends nothing."""
    found: dict[str, int] = {}
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("%s cannot be read (%s): sessions that were ended live on", path.name, error)
        return found
    for line in lines:
        words = line.split()
        if len(words) == _N_WORDS and words[0].isdecimal():
            found[words[1]] = int(words[0])
    return found


def _digest(seal: str) -> str:
    """Return what is stored of a seal: with it, and without the rest, no cookie can be made."""
    return sha256(seal.encode()).hexdigest()
