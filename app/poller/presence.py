"""Whether a server is there, and which of its comings and goings are worth an entry.

Owns `away_since` and the two entries, lost and back, one each. A refused connection is certain at
once; mere silence becomes an entry only after a while, because a busy server may miss a look.
"""

from datetime import datetime

from app.core.format import span
from app.poller.happening import BACK, LOST, Happening
from app.sglang.probe import Silence

NOTED_AFTER_S = 10.0


class Presence:
    """`noted_lost_at`: since when the ledger already says that the server is lost."""

    def __init__(self, url: str, noted_lost_at: datetime | None = None) -> None:
        self.away_since = noted_lost_at
        self._url = url
        self._is_noted = noted_lost_at is not None

    def silent(self, silence: Silence, now: datetime) -> tuple[Happening, ...]:
        since = self.away_since or now
        self.away_since = since
        is_certain = silence.is_refused or (now - since).total_seconds() >= NOTED_AFTER_S
        if self._is_noted or not is_certain:
            return ()
        self._is_noted = True
        return (Happening(url=self._url, event=LOST, words=silence.reason, at=now),)

    def answered(self, now: datetime) -> tuple[Happening, ...]:
        since, was_noted = self.away_since, self._is_noted
        self.away_since, self._is_noted = None, False
        if since is None or not was_noted:
            return ()
        words = f"away for {span((now - since).total_seconds())}"
        return (Happening(url=self._url, event=BACK, words=words, at=now),)
