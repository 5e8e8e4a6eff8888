"""What the looks found that belongs into the ledger, written soon and never lost to a busy ledger.

Owns the queue between looks and ledger, and the pace of `last_good_at`. Invariant: an entry is
written once for each live run of its server; what cannot be written now waits for the next turn.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from app.core.types import RunId, ServerFacts
from app.ledger import activity
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.servers import mark_good, remember_server, servers
from app.poller.happening import BACK, LOST, begin_of
from app.poller.identity import facts_to_json, identity_in
from app.poller.watch import Found, Known

GOOD_EVERY_S = 10.0

T = TypeVar("T")


class Notebook:
    """Taken from on the event loop, written in one thread at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._deeds: list[tuple[Deed, datetime]] = []
        self._facts: dict[str, tuple[ServerFacts, datetime]] = {}
        self._good: dict[str, datetime] = {}
        self._written_good: dict[str, datetime] = {}

    def known(self, url: str, run_ids: Sequence[RunId]) -> Known:
        """Return what the ledger holds of a server; of a lost one, since when."""
        view = next((one for one in servers(self._ledger) if one.url == url), None)
        last = activity.last_of(self._ledger, run_ids, (LOST, BACK), begin_of(url))
        return Known(
            identity={} if view is None else identity_in(view.facts_json),
            noted_lost_at=last[1] if last is not None and last[0] == LOST else None,
        )

    def take(self, found: Found, run_ids: Sequence[RunId]) -> None:
        """Queue what is to be written of a look, for these runs."""
        self._deeds += [
            (Deed(who="system", event=one.event, detail=one.detail, run_id=run_id), one.at)
            for one in found.happenings
            for run_id in run_ids
        ]
        if found.facts is not None:
            self._facts[found.url] = (found.facts, found.at)
        if found.is_good and self._is_due(found):
            self._good[found.url] = found.at

    def _is_due(self, found: Found) -> bool:
        last = self._written_good.get(found.url)
        return last is None or abs((found.at - last).total_seconds()) >= GOOD_EVERY_S

    def write(self) -> None:
        """Write what is queued. LedgerError: the rest stays queued. Called from a thread."""
        deeds = list(self._deeds)
        if deeds:
            activity.add_all(self._ledger, deeds)
            del self._deeds[: len(deeds)]
        for url, (facts, at) in list(self._facts.items()):
            remember_server(self._ledger, url, facts_to_json(facts), at)
            _forget(self._facts, url, (facts, at))
            self._written_good[url] = at
            self._good.pop(url, None)
        good = dict(self._good)
        if good:
            mark_good(self._ledger, good)
            self._written_good |= good
            for url, at in good.items():
                _forget(self._good, url, at)


def _forget(queue: dict[str, T], url: str, written: T) -> None:
    """Take out what was written, unless something newer came meanwhile."""
    if queue.get(url) == written:
        del queue[url]
