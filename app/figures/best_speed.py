"""How fast a partition is beside its own best of the last hour: what *slow* is told from.

Owns the marks since the last control change of its run: any pause, concurrency or share that is
another makes speeds of before say nothing. Invariants: only time in which the partition had as much
to send as it may is looked at, so the last answers, which run nearly alone, are never slow; while
it is below its best that best does not age.
"""

from collections import deque
from collections.abc import Hashable

from app.core.thresholds import RunThresholds

HOUR_S = 3_600.0
_NOW_S, _SUSTAINED_S = 60.0, 300.0
# a window is looked at once it is filled so far
_FILLED_RATIO = 0.9
_MARKS_PER_WINDOW = 20


class BestSpeed:
    """See the module. One partition; fed at each look with rising times."""

    def __init__(self) -> None:
        self._control: Hashable = None
        self._marks: deque[tuple[float, int]] = deque()
        self._bests: deque[tuple[float, float]] = deque()  # falling speeds, the best first
        self.below_since_s: float | None = None
        self.now_tokens_per_s: float | None = None

    @property
    def best_tokens_per_s(self) -> float | None:
        return self._bests[0][1] if self._bests else None

    def add(
        self, at_s: float, received_tokens: int, control: Hashable, limits: RunThresholds
    ) -> None:
        """Take what had come by now, `control` being who may do how much."""
        if control != self._control:
            self.forget()
            self._control = control
            self._bests.clear()
        now_s = min(_NOW_S, limits.slow_after_s / 3)
        sustained_s = min(_SUSTAINED_S, limits.slow_after_s / 3)
        marks = self._marks
        if not marks or at_s - marks[-1][0] >= now_s / _MARKS_PER_WINDOW:
            marks.append((at_s, received_tokens))
        while marks[0][0] < at_s - sustained_s - now_s:
            marks.popleft()
        self.now_tokens_per_s = self._mean(now_s)
        self._look_below(at_s, limits.slow_ratio)
        sustained = self._mean(sustained_s)
        if sustained is not None:
            self._take_best(at_s, sustained)

    def forget(self) -> None:
        """Begin the windows anew: it has nothing more to send, or nothing can come now."""
        self._marks.clear()
        self.below_since_s = self.now_tokens_per_s = None

    def _mean(self, window_s: float) -> float | None:
        newest, begin = self._marks[-1], self._marks[0]
        for mark in self._marks:
            if mark[0] > newest[0] - window_s:
                break
            begin = mark  # the last before the window: looks that come late leave no gap in it
        passed_s = newest[0] - begin[0]
        if passed_s < window_s * _FILLED_RATIO:
            return None
        return (newest[1] - begin[1]) / passed_s

    def _look_below(self, at_s: float, ratio: float) -> None:
        now, best = self.now_tokens_per_s, self.best_tokens_per_s
        is_below = now is not None and best is not None and now < ratio * best
        if not is_below:
            self.below_since_s = None
        elif self.below_since_s is None:
            self.below_since_s = at_s

    def _take_best(self, at_s: float, sustained: float) -> None:
        bests = self._bests
        while bests and bests[-1][1] <= sustained:
            bests.pop()
        bests.append((at_s, sustained))
        while self.below_since_s is None and bests[0][0] < at_s - HOUR_S:
            bests.popleft()
