"""Speeds as SVG paths: sparklines and the chart's lines, with gaps where nothing was recorded.

Owns scaling and the text of a path. Pure. Invariants: a gap is a break in the line, never a zero;
coordinates are whole numbers, and a line of the chart is fine enough to be read back: its height is
2,000 units, a strip of steps has the figures themselves as its units.
"""

from collections.abc import Iterable, Sequence

SPARK_WIDTH, SPARK_HEIGHT = 88, 24
_FEWEST_SEEN = 5  # of a sparkline: fewer points are a hook at its end
CHART_WIDTH, CHART_UNITS = 960, 2_000
# upper edges, and into how many steps of 1, 2 or 5 each is cut
_NICE = {1: 5, 1.5: 3, 2: 4, 2.5: 5, 3: 3, 4: 4, 5: 5, 6: 3, 8: 4, 10: 5}


def spark_path(values: Sequence[float | None]) -> str:
    """Return a sparkline on its own scale, zero at the bottom; nothing of so few as say nothing.

    >>> spark_path([0, None, 0, 5, 5, 10]), spark_path([None, 0, 5, 10, 0])
    ('M0 23M35 23L53 12L70 12L88 1', '')
    """
    if sum(value is not None for value in values) < _FEWEST_SEEN:
        return ""
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    step = SPARK_WIDTH / max(1, len(values) - 1)
    drawn, is_down = [], False
    for place, value in enumerate(values):
        if value is None:
            is_down = False
            continue
        y = 1 + (SPARK_HEIGHT - 2) * (1 - min(value, top) / top)
        drawn.append(f"{'L' if is_down else 'M'}{round(place * step)} {round(y)}")
        is_down = True
    return "".join(drawn)


def chart_path(values: Sequence[float | None], top: float) -> str:
    """Return a line of the chart whose upper edge is `top`: each point from the one before it.

    >>> chart_path([0, 5, None, 10, 7.5], 10)
    'M0 2000l240-1000M720 0l240 500'
    """
    step = CHART_WIDTH / max(1, len(values) - 1)
    drawn: list[str] = []
    last: tuple[int, int] | None = None
    for place, value in enumerate(values):
        if value is None:
            last = None
            continue
        x, y = round(place * step), round(CHART_UNITS * (1 - min(value, top) / top))
        drawn.append(f"M{x} {y}" if last is None else f"l{_pair(x - last[0], y - last[1])}")
        last = x, y
    return "".join(drawn)


def levels_path(values: Sequence[float | None], top: float) -> str:
    """Return each value as a flat stroke over its own stretch: nothing is said of between.

    >>> levels_path([5, None, 10], 10)
    'M0 1000h320M640 0h320'
    """
    width = CHART_WIDTH / max(1, len(values))
    return "".join(
        f"M{round(place * width)} {round(CHART_UNITS * (1 - min(value, top) / top))}h{round(width)}"
        for place, value in enumerate(values)
        if value is not None
    )


def _pair(x: int, y: int) -> str:
    return f"{x}{y}" if y < 0 else f"{x} {y}"


def steps_path(values: Sequence[float | None], top: int) -> str:
    """Return a gauge as steps in a strip that is `top` units high: a value holds until the next.

    >>> steps_path([64, 64, 96, None, 10], 100)
    'M0 36H480V4M960 90'
    """
    step = CHART_WIDTH / max(1, len(values) - 1)
    drawn: list[str] = []
    began_x, last_x, last_y = 0, 0, None
    for place, value in enumerate([*values, None]):
        x, y = round(place * step), None if value is None else round(top - min(value, top))
        if y != last_y:
            until_x = last_x if y is None else x
            if last_y is not None and until_x > began_x:
                drawn.append(f"H{until_x}")
            if y is not None:
                drawn.append(f"M{x} {y}" if last_y is None else f"V{y}")
            began_x = x
        last_x, last_y = x, y
    return "".join(drawn)


def band_path(bands: Iterable[tuple[float, float]]) -> str:
    """Return bands of the chart's whole height; each from and to a share of its width, 0..1.

    >>> band_path([(0.25, 0.5)])
    'M240 0h240v2000h-240z'
    """
    drawn = []
    for left, right in bands:
        x = round(left * CHART_WIDTH)
        width = max(1, round(right * CHART_WIDTH) - x)
        drawn.append(f"M{x} 0h{width}v{CHART_UNITS}h-{width}z")
    return "".join(drawn)


def bars_path(counts: Sequence[int]) -> str:
    """Return bars side by side, 960 wide and 100 high in all; what holds something is seen.

    >>> bars_path([0, 5, 10])
    'M333 100v-50h294v50zM653 100v-100h294v100z'
    """
    most, width = max(counts, default=0), CHART_WIDTH / max(1, len(counts))
    drawn = []
    for place, n in enumerate(counts):
        if n:
            height = max(1, round(100 * n / most))
            x, across = round((place + 0.04) * width), round(0.92 * width)
            drawn.append(f"M{x} 100v-{height}h{across}v{height}z")
    return "".join(drawn)


def nice_top(highest: float) -> float:
    """Return a round upper edge for an axis that holds this value; no less than 10.

    >>> nice_top(15_400), nice_top(0), nice_top(980)
    (20000.0, 10.0, 1000.0)
    """
    return axis(highest)[0]


def axis(highest: float) -> tuple[float, int]:
    """Return the same edge, and into how many steps it is cut so that each label is round.

    >>> axis(15_400), axis(0), axis(11_300), axis(2_100)
    ((20000.0, 4), (10.0, 5), (15000.0, 3), (2500.0, 5))
    """
    scale, highest = 1.0, max(highest, 10.0)
    while scale * 10 < highest:
        scale *= 10
    return next((scale * top, n) for top, n in _NICE.items() if scale * top >= highest)
