"""Tokens that change while the service lives: the files of the home are looked at again.

Owns when a file counts as changed. Invariants: a token that was set in the environment never
changes; a token file that went away or cannot be read leaves the door as it is, a view token's that
went away shuts it for those who look.
"""

import logging
from pathlib import Path

from app.errors import LongwatchError
from app.gate.keys import Keys
from app.gate.token_file import TOKEN_NAME, VIEW_TOKEN_NAME, read_token, view_token

logger = logging.getLogger("longwatch")
_Mark = tuple[int, int, int] | None


class Rotation:
    """Reads the files of one home for the keys of its service. Look in a thread, then `take`."""

    def __init__(self, home: Path, keys: Keys, given: str | None, given_view: str | None) -> None:
        self._home = home
        self._keys = keys
        self._given = given
        self._given_view = given_view
        self._marks = self._look()

    def changed(self) -> tuple[str, str | None] | None:
        """Return the tokens of now if a file has changed since it was read last, else None."""
        marks = self._look()
        if marks == self._marks:
            return None
        try:
            token = self._given or read_token(self._home) or self._keys.token
            view = view_token(self._home, token, self._given_view)
        except LongwatchError as error:
            logger.warning("the tokens of the home stay as they were: %s", error)
            self._marks = marks
            return None
        self._marks = marks
        return token, view

    def take(self, tokens: tuple[str, str | None] | None) -> None:
        """Let only these open the door; what was made from an old one ends."""
        if tokens is None or tokens == (self._keys.token, self._keys.view_token):
            return
        logger.info("a token of the home was changed; what was opened with the old one has ended")
        self._keys.renew(*tokens)

    def _look(self) -> tuple[_Mark, _Mark]:
        return _mark(self._home / TOKEN_NAME), _mark(self._home / VIEW_TOKEN_NAME)


def _mark(path: Path) -> _Mark:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_ino, seen.st_mtime_ns, seen.st_size
