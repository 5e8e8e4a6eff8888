"""Whether an answer ends in a loop: one token, or a short period, repeated many times.

Owns the cheap check of an answer's tail; what follows from it is `outcome.py`'s. It looks at no
more than the last `window` ids and compares them as bytes, so a normal text costs some ten
microseconds whatever its length.
"""

from __future__ import annotations  # array[int] cannot be written at run time before 3.12

from array import array

MAX_PERIOD = 200
MIN_REPEATS = 8
MIN_SPAN = 200
WINDOW = 2000


def loop_period(
    ids: array[int],
    *,
    max_period: int = MAX_PERIOD,
    min_repeats: int = MIN_REPEATS,
    min_span: int = MIN_SPAN,
    window: int = WINDOW,
) -> int | None:
    """Return the shortest period that the tail repeats, or None for a tail that does not loop.

    A tail loops with period p when its last `min_repeats * p` ids, and at least `min_span` of
    them (a row of dashes or a table is no loop), are one block of p ids over and over. A period
    for which the window is too short is not looked for.
    """
    tail = ids[-window:]
    packed, width = tail.tobytes(), tail.itemsize
    backwards = tail[-2 : -2 - max_period : -1]
    # most periods fall at once, by the last id alone
    for period in [p for p, token in enumerate(backwards, 1) if token == tail[-1]]:
        span = max(min_repeats * period, min_span)
        if span > len(tail):
            break  # longer periods need longer spans
        start, shift = len(packed) - span * width, period * width
        if packed[start + shift :] == packed[start:-shift]:
            return period
    return None
