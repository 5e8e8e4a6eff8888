"""The effect of a change of concurrency as an entry of the activity, some minutes after it, once.

Owns when it is looked for, and that it is told once, across restarts too: what is known stands in
the activity and the snapshots, and the entry is written only where none stands behind the change.
Called by the keeping thread.
"""

from collections.abc import Sequence
from datetime import timedelta

from app.clock import Clock, from_ms
from app.core.effects import AFTER_S, EFFECT, Happening, Reading, effect, judged
from app.core.series import pieces
from app.core.types import RunId
from app.ledger.activity import Activity, Deed, add_once, latest
from app.ledger.db import Ledger
from app.recorder.history import COARSE_STEP_S, History
from app.recorder.rows import Moment

_EVERY_S = 10.0
_LOOKED_AT = 60
_WHO = "system"


class Effects:
    """See the module. `row_s` is how dense the history of an earlier service is."""

    def __init__(self, ledger: Ledger, clock: Clock, row_s: float) -> None:
        self._ledger, self._clock = ledger, clock
        self._step_s = max(row_s, COARSE_STEP_S)
        self._looked_at_s = float("-inf")

    def tell(self, histories: Sequence[tuple[RunId, History]]) -> None:
        """Judge what can be judged now. LedgerError: it is looked at again."""
        if self._clock.monotonic() - self._looked_at_s < _EVERY_S:
            return
        for run_id, history in histories:
            self._tell(run_id, history)
        self._looked_at_s = self._clock.monotonic()

    def _tell(self, run_id: RunId, history: History) -> None:
        now = self._clock.now()
        entries = [_happening(each) for each in reversed(latest(self._ledger, run_id, _LOOKED_AT))]
        change = judged(entries, now.timestamp())
        if change is None:
            return
        moments = history.moments()
        known = pieces([each.mark for each in moments], now.timestamp(), self._step_s)
        said = effect(change, known, _readings(moments))
        if said is None:
            return
        deed = Deed(
            who=_WHO, event=EFFECT, detail=said, run_id=run_id, partition_id=change.partition_id
        )
        at = from_ms(int(1000 * change.end_s)) + timedelta(seconds=AFTER_S)
        add_once(self._ledger, deed, change.entry_id, at)


def _readings(moments: Sequence[Moment]) -> list[Reading]:
    return [
        Reading(at_s=each.at_s, first_token_s=each.first_token_s)
        for each in moments
        if each.first_token_s is not None
    ]


def _happening(entry: Activity) -> Happening:
    return Happening(
        id=entry.id,
        at_s=entry.at.timestamp(),
        who=entry.who,
        event=entry.event,
        detail=entry.detail,
        partition_id=entry.partition_id,
    )
