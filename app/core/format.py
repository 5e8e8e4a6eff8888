"""Figures as words: numbers, tokens, speeds, spans of time, ages and clock times.

Owns wording and rounding only; knows no zone and reads no clock: whoever calls hands in moments
that already stand in the zone of the reader. Invariant: what is not known becomes words, never 0.
"""

import signal
from datetime import datetime, timedelta

from app.core.estimate import Estimate, Unknown

UNKNOWN = "unknown"
_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S


def whole(n: int | None) -> str:
    """Return a count with commas.

    >>> whole(88000), whole(None)
    ('88,000', 'unknown')
    """
    return UNKNOWN if n is None else f"{n:,}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun.

    >>> plural(1, "sample"), plural(1200, "sample"), plural(2, "entry", "entries")
    ('1 sample', '1,200 samples', '2 entries')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def tokens(n: float | None) -> str:
    """Return a number of tokens in three digits, rounded down: no budget looks fuller than it is.

    >>> tokens(950), tokens(12_345), tokens(9_999_999), tokens(4_120 * 10**9), tokens(None)
    ('950', '12.3k', '9.99M', '4.12T', 'unknown')
    """
    if n is None:
        return UNKNOWN
    amount = int(n)
    for scale, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if amount >= scale:
            digits = max(0, 3 - len(str(amount // scale)))
            cut = amount * 10**digits // scale
            text = f"{cut / 10**digits:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if digits else text}{unit}"
    return str(amount)


def speed(tokens_per_s: float | None) -> str:
    """Return a speed.

    >>> speed(1034.6), speed(7.25), speed(0.0), speed(None)
    ('1,035 tok/s', '7.2 tok/s', '0 tok/s', 'unknown')
    """
    if tokens_per_s is None:
        return UNKNOWN
    if 0 < tokens_per_s < 10:  # noqa: PLR2004 - below ten, one more digit says something
        return f"{tokens_per_s:.1f} tok/s"
    return f"{tokens_per_s:,.0f} tok/s"


def span(seconds: float) -> str:
    """Return a span of time in at most two units.

    >>> span(0.4), span(42), span(200), span(11520), span(3 * 86400 + 7200)
    ('0 s', '42 s', '3m 20s', '3h 12m', '3d 2h')
    """
    left = max(0, int(seconds))
    if left < 60:  # noqa: PLR2004 - a minute
        return f"{left} s"
    units = (("d", _DAY_S), ("h", 3600), ("m", 60), ("s", 1))
    first = next(i for i, (_, size) in enumerate(units) if left >= size)
    (name, size), (next_name, next_size) = units[first], units[first + 1]
    big, rest = divmod(left, size)
    small = rest // next_size
    return f"{big}{name} {small}{next_name}" if small else f"{big}{name}"


def age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago something was.

    >>> from datetime import UTC
    >>> noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    >>> age(noon - timedelta(seconds=75), noon), age(None, noon)
    ('1m 15s ago', 'never')
    """
    return "never" if moment is None else f"{span((now - moment).total_seconds())} ago"


def time_left(estimate: Estimate | Unknown) -> str:
    """Return the time left with its range; only the range where the middle says little.

    >>> time_left(Estimate(low_s=10500, mid_s=11520, high_s=13200))
    '3h 12m (2h 55m to 3h 40m)'
    >>> time_left(Estimate(low_s=3600, mid_s=7200, high_s=18000))
    '1h to 5h'
    >>> time_left(Estimate(low_s=0, mid_s=0, high_s=0)), time_left(Unknown(why="no tokens"))
    ('nothing left', 'no tokens')
    """
    if isinstance(estimate, Unknown):
        return estimate.why
    if estimate.high_s <= 0:
        return "nothing left"
    if estimate.mid_s > _WEEK_S:
        return "≥ 7 days"
    low, mid, high = (span(each) for each in (estimate.low_s, estimate.mid_s, estimate.high_s))
    if low == high:
        return mid
    if estimate.high_s > 2 * estimate.mid_s:
        return f"{low} to {high}"
    return f"{mid} ({low} to {high})"


def signal_name(number: int) -> str:
    """Return the name of a signal, its number where it has none (the real-time ones).

    >>> signal_name(9), signal_name(35)
    ('SIGKILL', 'signal 35')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def clock_time(moment: datetime, now: datetime) -> str:
    """Return when something will be, short; both moments in the zone of the reader.

    >>> from datetime import UTC
    >>> noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    >>> [clock_time(noon + timedelta(hours=hours), noon) for hours in (2, 30, 400)]
    ['14:00', 'Thu 18:00', '18 May']
    """
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    if moment - now < timedelta(days=6):
        return f"{moment:%a %H:%M}"
    return f"{moment.day} {moment:%b}"


def done_at(estimate: Estimate | Unknown, now: datetime) -> str | None:
    """Return the clock time of the end, rounded as the range allows; None if not known.

    >>> from datetime import UTC
    >>> noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    >>> done_at(Estimate(low_s=10500, mid_s=11530, high_s=13200), noon)
    '15:12'
    >>> done_at(Estimate(low_s=10500, mid_s=11520, high_s=15000), noon)
    '15:10'
    """
    if isinstance(estimate, Unknown) or estimate.mid_s > _WEEK_S:
        return None
    width_s = estimate.high_s - estimate.low_s
    step_s = 60 if width_s <= 3600 else 300 if width_s <= 6 * 3600 else 1800  # noqa: PLR2004 - 1 h, 6 h
    end = now + timedelta(seconds=estimate.mid_s)
    into_day_s = end.hour * 3600 + end.minute * 60 + end.second
    rounded = (into_day_s + step_s // 2) // step_s * step_s
    midnight = end.replace(hour=0, minute=0, second=0, microsecond=0)
    return clock_time(midnight + timedelta(seconds=rounded), now)


def span_of(since: datetime, now: datetime) -> str:
    """Return how long something has lasted, written as every other span.

    >>> from datetime import UTC
    >>> noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    >>> [span_of(noon - timedelta(seconds=s), noon) for s in (59, 61, 840, 7260)]
    ['59 s', '1m 1s', '14m', '2h 1m']
    """
    return span((now - since).total_seconds())


def size(n_bytes: int | None) -> str:
    """Return an amount of bytes.

    >>> size(512), size(1_200_000), size(None)
    ('512 B', '1.2 MB', 'unknown')
    """
    if n_bytes is None:
        return UNKNOWN
    for scale, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.1f} {unit}"
    return f"{n_bytes} B"


def one_line(text: str) -> str:
    r"""Return text from elsewhere as one line without control characters: a terminal obeys those.

    >>> one_line("boom\x1b[2J\nagain")
    'boom?[2J again'
    """
    flat = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in flat)
