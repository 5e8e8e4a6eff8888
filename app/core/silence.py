"""When the silence of one partition's requests is a standstill, while others get their tokens.

Owns the bound. Pure. A whole server that is silent is the run's condition; this is of requests that
hang alone, at a server that goes on: it may take days to see, since the run as a whole moves.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

# a request that waits in the server's queue is silent too: so many times its longest usual wait
_WAITS_RATIO = 5.0
# the same where the server does not tell how long requests wait for their first token
_UNTOLD_RATIO = 3.0
# for so much of the bound others must have got tokens since; else it is the server that is silent
_OTHERS_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """What is known of a partition's requests in flight.

    `since`: none of them has brought a token since then. `others_at`: when another partition
    of the run last got a token, None if none has. `n_waiting`: requests in the server's
    queue, None if it does not tell. `first_token_p99_s`: the time to the first token that one in a
    hundred takes longer than, over the last ten minutes.
    """

    since: datetime
    others_at: datetime | None = None
    n_waiting: int | None = None
    first_token_p99_s: float | None = None


def bound_s(silence: Silence, stall_after_s: float) -> float:
    """Return after how long a silence is a standstill.

    >>> from datetime import UTC
    >>> since = datetime(2024, 5, 1, tzinfo=UTC)
    >>> bound_s(Silence(since=since), 600)
    600.0
    >>> bound_s(Silence(since=since, n_waiting=200, first_token_p99_s=300), 600)
    1500.0
    >>> bound_s(Silence(since=since, n_waiting=200), 600)
    1800.0
    """
    if not silence.n_waiting:
        return float(stall_after_s)
    if silence.first_token_p99_s is None:
        return _UNTOLD_RATIO * stall_after_s
    return max(float(stall_after_s), _WAITS_RATIO * silence.first_token_p99_s)


def stands_still(silence: Silence, stall_after_s: float, now: datetime) -> bool:
    """Return whether the partition stands still though the server goes on."""
    bound = timedelta(seconds=bound_s(silence, stall_after_s))
    if silence.others_at is None or now - silence.since < bound:
        return False
    return silence.others_at - silence.since >= _OTHERS_RATIO * bound
