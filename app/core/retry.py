"""How long to wait before the next try, and how far to step back from a server that is full.

Owns delays and the effective concurrency after busy answers, as values; who waits and who counts
is the worker's. Every delay is jittered by the given `Random`, so that samples that were put back
together do not come back together.
"""

from dataclasses import dataclass, replace
from random import Random

BACKOFF_FIRST_S = 1.0
BACKOFF_CAP_S = 60.0
PROBE_FIRST_S = 0.5
PROBE_CAP_S = 30.0


def backoff_s(
    charged: int, random: Random, *, first_s: float = BACKOFF_FIRST_S, cap_s: float = BACKOFF_CAP_S
) -> float:
    """Return a delay between half and all of `first_s`, doubled per charged attempt up to `cap_s`.

    `charged` counts the charged attempts before this one; 0 gives the first delay.
    """
    return _spread(_doubled(first_s, charged, cap_s), random)


def probe_gap_s(
    n_probes: int, random: Random, *, first_s: float = PROBE_FIRST_S, cap_s: float = PROBE_CAP_S
) -> float:
    """Return the gap before the next look at a server that `n_probes` looks found away (srv-02)."""
    return _spread(_doubled(first_s, n_probes, cap_s), random)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed:
    """The share of its concurrency that a worker may use after busy answers (srv-17).

    Each busy answer halves the share, once per `hold_s`: the sixty busy answers of one moment are
    one message. After that it doubles every `double_s` until it is whole again. The limit itself
    is never touched, so a change by a person takes effect at once, in proportion.
    """

    share_ratio: float = 1.0
    changed_s: float = 0.0
    hold_s: float = 2.0
    double_s: float = 15.0
    floor_ratio: float = 1 / 4096

    def on_busy(self, now_s: float) -> "Shed":
        """Return the value after a busy answer at `now_s` (monotonic)."""
        if self.share_ratio < 1 and now_s - self.changed_s < self.hold_s:
            return self
        share = max(self.floor_ratio, self.share_at(now_s) / 2)
        return replace(self, share_ratio=share, changed_s=now_s)

    def share_at(self, now_s: float) -> float:
        """Return the share that may be used at `now_s`, in (0, 1]."""
        if self.share_ratio >= 1:
            return 1.0
        doublings = max(0.0, now_s - self.changed_s - self.hold_s) / self.double_s
        # min() first: a power of a week's doublings overflows a float
        return float(min(1.0, self.share_ratio * 2 ** min(doublings, 64)))

    def allowed(self, limit: int, now_s: float) -> int:
        """Return how many of `limit` may be in flight: at least 1, unless the limit is 0."""
        return min(limit, max(1, int(limit * self.share_at(now_s))))


def _doubled(first_s: float, times: int, cap_s: float) -> float:
    return float(min(cap_s, first_s * 2 ** min(times, 64)))


def _spread(delay_s: float, random: Random) -> float:
    return random.uniform(delay_s / 2, delay_s)
