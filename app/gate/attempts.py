"""How often a wrong token was shown in the last minute, by one client and by all.

Invariant: at most MAX_BY_ALL entries are remembered, whoever knocks how often.
"""

import math
from collections import deque

from app.clock import Clock

WINDOW_S = 60.0
MAX_BY_ONE = 10
MAX_BY_ALL = 100


class Attempts:
    """The wrong tokens of the last minute. `client` is an address without port."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: deque[tuple[float, str]] = deque(maxlen=MAX_BY_ALL)

    def note(self, client: str) -> None:
        self._wrong.append((self._clock.monotonic(), client))

    def wait_s(self, client: str) -> int:
        """Return the whole seconds until that client may try again, 0 for now."""
        now = self._clock.monotonic()
        while self._wrong and self._wrong[0][0] <= now - WINDOW_S:
            self._wrong.popleft()
        own = [at for at, who in self._wrong if who == client]
        ends = [own[-MAX_BY_ONE]] if len(own) >= MAX_BY_ONE else []
        if len(self._wrong) >= MAX_BY_ALL:
            ends.append(self._wrong[0][0])
        return max((math.ceil(at + WINDOW_S - now) for at in ends), default=0)
