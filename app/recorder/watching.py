"""How the ledger's file fares: whether it takes our writes, its disk, its write-ahead log.

Owns since when a trouble lasts and the service's own checkpoints; the sentences are
`core/ledger_trouble.py`'s. Called from one thread; `facts` is a value that anybody may read.
Invariant: a ledger in good order is neither written nor synced from here.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from app.clock import Clock
from app.core.ledger_trouble import LedgerFacts
from app.errors import LedgerError
from app.files.openers import others_with
from app.files.space import free_bytes
from app.ledger.db import Ledger
from app.ledger.upkeep import WriteTrouble, fold_log, log_bytes, trouble_of
from app.settings import Settings

# below this, or half of what raises a warning, the workers' own checkpoints do
_LOG_WORTH_BYTES = 8_000_000
_FOLD_EVERY_S = 4.0
_LOOK_EVERY_S = 5.0
T = TypeVar("T")


class LedgerWatch:
    """See the module."""

    def __init__(self, ledger: Ledger, settings: Settings, clock: Clock) -> None:
        self._ledger = ledger
        self._settings = settings
        self._clock = clock
        self._folder = ledger.path.parent
        self._worth_bytes = min(_LOG_WORTH_BYTES, settings.ledger_log_warn_bytes // 2)
        self.facts = LedgerFacts(folder=str(self._folder))
        self._folded_at_s: float | None = None
        self._free_at_s: float | None = None
        self._others_at_s: float | None = None

    @property
    def troubled_since(self) -> datetime | None:
        """Since when the ledger has taken no write of ours, None while it does."""
        return self.facts.full_since or self.facts.locked_since

    def writing(self, work: Callable[[], T]) -> T:
        """Return what the work returns; remember whether the ledger took it."""
        try:
            done = work()
        except LedgerError as error:
            self._failed(trouble_of(error))
            raise
        self.facts = replace(self.facts, full_since=None, locked_since=None)
        return done

    def _failed(self, trouble: WriteTrouble) -> None:
        now, facts = self._clock.now(), self.facts
        if trouble is WriteTrouble.FULL:
            since = facts.full_since or now
            self.facts = replace(facts, full_since=since, locked_since=None)
        elif trouble is WriteTrouble.LOCKED:
            self.facts = replace(facts, locked_since=facts.locked_since or now)

    def look(self, *, is_late: bool) -> None:
        """Measure the disk and the log; fold a large log in. `is_late`: workers cannot record."""
        if self.troubled_since or is_late or self._is_due(self._free_at_s, _LOOK_EVERY_S):
            self._free_at_s = self._clock.monotonic()
            free = free_bytes(self._folder, self._settings.space_timeout_s)
            self.facts = replace(self.facts, free_bytes=free)
        self._look_at_log()
        self._look_for_others()

    def _is_due(self, last_s: float | None, every_s: float) -> bool:
        return last_s is None or self._clock.monotonic() - last_s >= every_s

    def _look_at_log(self) -> None:
        n_bytes = log_bytes(self._ledger)
        reading = self.facts.read_since if n_bytes >= self._worth_bytes else None
        self.facts = replace(self.facts, log_bytes=n_bytes, read_since=reading)
        # on a full disk the log is the one thing that can give room back
        is_worth = n_bytes >= self._worth_bytes or (n_bytes and self.facts.full_since is not None)
        if not is_worth or not self._is_due(self._folded_at_s, _FOLD_EVERY_S):
            return
        self._folded_at_s = self._clock.monotonic()
        try:
            log = fold_log(self._ledger, self._worth_bytes)
        except LedgerError:
            return  # full or locked: our writes tell the same, and it is tried again
        since = (self.facts.read_since or self._clock.now()) if log.is_held else None
        self.facts = replace(self.facts, log_bytes=log.n_bytes, read_since=since)

    def _look_for_others(self) -> None:
        facts = self.facts
        is_large = (facts.log_bytes or 0) >= self._settings.ledger_log_warn_bytes
        if facts.locked_since is None and not (is_large and facts.read_since):
            self.facts = replace(facts, others=())
            self._others_at_s = None
        elif self._is_due(self._others_at_s, _LOOK_EVERY_S):
            self._others_at_s = self._clock.monotonic()
            self.facts = replace(facts, others=others_with(self._ledger.path))
