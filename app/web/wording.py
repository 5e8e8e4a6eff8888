"""Figures as the words that pages show, beyond what terminal and pages share in `core/format`.

Owns the page's short forms: three digits in a cell, a dash for what is not known, ages, ranges.
Pure. Invariant: what is not known is a dash, never 0.
"""

from datetime import datetime, timedelta

from app.core import format as words
from app.core.estimate import Estimate, Unknown

DASH = "–"
_WEEK_S = 7 * 86_400


def rate(tokens_per_s: float | None) -> str:
    """Return a speed in three digits, without its unit.

    >>> rate(15432.1), rate(987.2), rate(4.26), rate(0.0), rate(None)
    ('15.4k', '987', '4.3', '0', '–')
    """
    if tokens_per_s is None:
        return DASH
    if 0 < tokens_per_s < 10:  # noqa: PLR2004 - below ten, one more digit says something
        return f"{tokens_per_s:.1f}"
    return words.tokens(round(tokens_per_s))


def exact_rate(tokens_per_s: float | None) -> str:
    """Return a speed in full where `rate` leaves digits out, else nothing: each row's is sent.

    >>> exact_rate(15432.1), exact_rate(987.2), exact_rate(None)
    ('15,432 tokens a second', '', '')
    """
    whole = round(tokens_per_s or 0.0)
    return f"{whole:,} tokens a second" if whole >= 1000 else ""  # noqa: PLR2004 - three digits


def typed_tokens(n: int | None) -> str:
    """Return a number of tokens as people type it, never rounded: "" for none.

    >>> [typed_tokens(n) for n in (10_000_000, 2_500_000, 12_345_678, 750_000, 950, None)]
    ['10M', '2.5M', '12345678', '750k', '950', '']
    """
    if n is None:
        return ""
    for scale, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        whole, rest = divmod(n, scale)
        if whole and rest % (scale // 100) == 0:
            digits = f"{whole}.{rest * 100 // scale:02d}".rstrip("0").rstrip(".")
            return f"{digits}{unit}"
    return str(n)


def percent(ratio: float | None) -> str:
    """Return a share in whole per cent.

    >>> percent(0.384), percent(0.004), percent(0.0), percent(None)
    ('38 %', '< 1 %', '0 %', '–')
    """
    if ratio is None:
        return DASH
    if 0 < ratio < 0.01:  # noqa: PLR2004 - something is not nothing
        return "< 1 %"
    return f"{int(ratio * 100)} %"


def share(part: int, whole: int) -> str:
    """Return a share with one digit after the point; a dash of nothing.

    >>> share(31, 1000), share(0, 7), share(1, 100_000), share(0, 0)
    ('3.1 %', '0 %', '< 0.1 %', '–')
    """
    if whole <= 0:
        return DASH
    if 0 < part * 1000 < whole:
        return "< 0.1 %"
    return f"{1000 * part // whole / 10:g} %"


def seconds(value_s: float | None) -> str:
    """Return a latency.

    >>> seconds(0.84), seconds(6.12), seconds(75), seconds(None)
    ('0.84 s', '6.1 s', '1m 15s', '–')
    """
    if value_s is None:
        return DASH
    if value_s < 1:
        return f"{value_s:.2f} s"
    return f"{value_s:.1f} s" if value_s < 60 else words.span(value_s)  # noqa: PLR2004 - a minute


def left(estimate: Estimate | Unknown) -> str:
    """Return the time left as one figure; the range where the middle says too little.

    >>> left(Estimate(low_s=10500, mid_s=11520, high_s=13200)), left(Unknown(why="paused"))
    ('3h 12m', '–')
    >>> left(Estimate(low_s=3600, mid_s=7200, high_s=18000))
    '1h – 5h'
    """
    if isinstance(estimate, Unknown):
        return DASH
    if estimate.mid_s > _WEEK_S:
        return "≥ 7 days"
    return spread(estimate) if is_wide(estimate) else words.span(estimate.mid_s)


def work_left(estimate: Estimate | Unknown) -> str:
    """Return how long a paused partition would take if it went on; a dash where not known.

    >>> work_left(Unknown(why="paused", work_s=15_000)), work_left(Unknown(why="paused"))
    ('4h 10m of work', '–')
    """
    if isinstance(estimate, Estimate) or estimate.work_s is None:
        return DASH
    if estimate.work_s > _WEEK_S:
        return "≥ 7 days of work"
    return f"{words.span(estimate.work_s)} of work"


def is_wide(estimate: Estimate) -> bool:
    """Return whether only the range says something."""
    return estimate.high_s > 2 * estimate.mid_s


def spread(estimate: Estimate) -> str:
    return f"{words.span(estimate.low_s)} – {words.span(estimate.high_s)}"


def left_about(estimate: Estimate | Unknown) -> str:
    """Return what stands under the time left: its range, or why it is not known."""
    if isinstance(estimate, Unknown):
        return estimate.why
    if estimate.mid_s > _WEEK_S or is_wide(estimate) or estimate.high_s <= 0:
        return ""
    return spread(estimate)


def moment(at: datetime, now: datetime) -> str:
    """Return a moment as a clock time in this machine's zone; a browser shows its own."""
    return words.clock_time(at.astimezone(), now.astimezone())


def typed_moment(at: datetime | None, now: datetime) -> str:
    """Return a moment to come as people type it, in this machine's zone; "" for none and past."""
    if at is None or at <= now:
        return ""
    here = at.astimezone()
    return f"{here:%Y-%m-%d %H:%M}" + (f":{here:%S}" if here.second else "")


def ends(estimate: Estimate, now: datetime) -> tuple[datetime, datetime, datetime]:
    """Return the soonest, the likely and the latest end; the likely one as the range allows it.

    Rounded to the minute, to 5 if the range is over an hour, to 30 if it is over six.
    """
    width_s = estimate.high_s - estimate.low_s
    step_s = 60 if width_s <= 3600 else 300 if width_s <= 6 * 3600 else 1800  # noqa: PLR2004 - 1 h, 6 h
    return (
        _rounded(now + timedelta(seconds=estimate.low_s), step_s),
        _rounded(now + timedelta(seconds=estimate.mid_s), step_s),
        _rounded(now + timedelta(seconds=estimate.high_s), step_s),
    )


def _rounded(at: datetime, step_s: int) -> datetime:
    stamp = at.timestamp()
    return datetime.fromtimestamp((stamp + step_s / 2) // step_s * step_s, at.tzinfo)
