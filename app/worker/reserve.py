"""What the answers in the making are still expected to bring: a worker's reservation.

Owns the lengths that this worker has seen end (bounded) and the model learnt from them; the rule
itself is `core/budget.py`.
"""

from array import array
from collections.abc import Iterable

from app.core.budget import margin, reservation
from app.core.lengths import Lengths
from app.core.types import Keep
from app.worker.call import Call

_RECENT = 4_000


class Reserve:
    def __init__(self, cap_tokens: int) -> None:
        self._cap_tokens = cap_tokens
        self._finished = array("I")
        self._cut = array("I")
        self._model: Lengths | None = None

    def begin(self, finished: "array[int]") -> None:
        """Start from answers that ended before this worker's time."""
        self._finished = finished

    def learn(self, settled: Iterable[Call]) -> None:
        """Take the lengths of answers that ended; the model is built anew when next asked."""
        self._finished.extend(
            call.made_tokens for call in settled if isinstance(call.outcome, Keep)
        )
        del self._finished[: max(0, len(self._finished) - _RECENT)]
        self._model = None

    def for_one(self, held: int, cap: int) -> int:
        """Return what to reserve for an answer that holds so many of at most so many tokens."""
        if cap > self._cap_tokens:
            self._raise_cap(cap)
        return reservation(self._model, held, cap)

    def margin(self, reserved_tokens: int) -> int:
        """Return what to keep free beside so many reserved tokens."""
        return margin(self._model, reserved_tokens)

    def _raise_cap(self, cap: int) -> None:
        """Take a higher limit: what the old one cut may be longer, nobody knows how much.

        Until the model is built anew, all that may come is reserved.
        """
        self._cut = array("I", (n for n in self._finished if n >= self._cap_tokens))
        self._finished = array("I", (n for n in self._finished if n < self._cap_tokens))
        self._cap_tokens = cap
        self._model = None

    def tokens(self, running: Iterable[Call], unsettled: Iterable[Call]) -> int:
        """Return the reservation of the running calls.

        What has come since the last tick is not among the ledger's held tokens yet, so it counts
        here, that of ended calls too.
        """
        running = list(running)
        if self._model is None and self._finished:
            self._model = Lengths.learn(
                finished=self._finished,
                running=[*self._cut, *(call.made_tokens for call in running)],
                cap=self._cap_tokens,
            )
        expected = sum(self.for_one(c.made_tokens, c.claim.max_new_tokens) for c in running)
        return expected + sum(len(c.answer.ids) - c.saved for c in (*running, *unsettled))
