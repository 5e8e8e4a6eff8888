"""Whose socket a loopback connection comes from, by the kernel's word.

On a shared machine every user reaches 127.0.0.1, so an address proves nothing; the owner of the
client's socket does. Invariants: only a connection that stands counts; a verdict is kept for one
connection only, never for the next one from the same port. Where the kernel does not tell, loopback
is trusted, and the log says so once.
"""

import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from app.gate.asking import Address
from app.gate.hosts import is_loopback
from app.gate.socket_diag import Found, look_up
from app.gate.socket_tables import TABLES, owner_of

logger = logging.getLogger("longwatch")
# The table changes while it is read, page by page: a line may be missed.
_LOOKS = 3
_MAX_KEPT = 1_024
LookUp = Callable[[Address, Address], Found | None]


class Peers:
    """Tells whether a connection is our own user's or root's. Not for use in several threads."""

    def __init__(
        self, uid: int | None = None, *, ask: LookUp = look_up, tables: Path = TABLES
    ) -> None:
        self._trusted = {0, os.geteuid() if uid is None else uid}
        self._ask = ask
        self._has_answered = False
        self._tables = tables
        self._kept: OrderedDict[Address, tuple[Address, bool]] = OrderedDict()
        self._told = False

    def is_own(self, client: Address | None, server: Address | None) -> bool:
        """Return whether the connection between those two ends is to be trusted.

        `client` must be the same object for all requests of a connection and another one for the
        next, as uvicorn's is: so that no later user of the port inherits the verdict.
        """
        if client is None or server is None or not is_loopback(client[0]):
            return False
        kept = self._kept.get(client)
        if kept is not None and kept[0] is client:
            return kept[1]
        verdict = self._judge(client, server)
        self._kept[client] = (client, verdict)
        self._kept.move_to_end(client)
        while len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return verdict

    def _judge(self, client: Address, server: Address) -> bool:
        try:
            return self._owner(client, server) in self._trusted
        except OSError as error:
            self._say_once(error)
            return True

    def _owner(self, client: Address, server: Address) -> int | None:
        """Return the uid of the client's end, None if it does not stand; OSError: not known."""
        try:
            found = self._ask(client, server)
        except OSError:
            found = None
        if found is not None:
            self._has_answered = True
            return found.uid if found.stands else None
        # "no such socket" and "no such question" are told alike: believed once it has known one
        for _ in range(0 if self._has_answered else _LOOKS):
            owner = owner_of(client, server, self._tables)
            if owner is not None:
                return owner
        return None

    def _say_once(self, error: OSError) -> None:
        if not self._told:
            logger.warning(
                "the owner of a connection cannot be found out here (%s): every user of this"
                " machine can see and stop runs. Set LONGWATCH_TOKEN to ask for a login",
                error.strerror or error,
            )
        self._told = True
