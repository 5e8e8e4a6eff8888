"""What was shown against what came, drawn: a few lines of a terminal, and an SVG of its own.

Owns scales and marks of both. Pure. Along goes the active time, up the time left; the truth is the
straight line down to nothing. Names are escaped; colours are light and differ in lightness.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from app.core.eta_errors import CurvePoint
from app.core.format import one_line, span

_WIDTH, _HEIGHT = 64, 12
_TRUTH, _MIDDLE, _RANGE = "·", "●", "│"
# what was shown beyond this multiple of the whole time lies at the edge
_TOP_RATIO = 1.5
_PANEL_WIDTH, _PANEL_HEIGHT, _GAP, _COLUMNS = 440, 220, 36, 2
_LEFT, _FOOT, _HEAD = 56, 40, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One curve with its name and the line that says how right it was."""

    name: str
    said: str
    curve: tuple[CurvePoint, ...]

    @property
    def whole_s(self) -> float:
        return self.curve[0].truth_s + self.curve[0].active_s if self.curve else 0.0

    @property
    def top_s(self) -> float:
        """Return the upper edge: the whole time, or what was shown if that was more."""
        highest = max((each.left[2] for each in self.curve if each.left), default=0.0)
        return max(self.whole_s, min(highest, _TOP_RATIO * self.whole_s)) or 1.0


def terminal(panel: Panel) -> list[str]:
    """Return the drawing as lines: truth, middle and range, with the span of both axes."""
    whole_s, top_s = panel.whole_s, panel.top_s
    if whole_s <= 0:
        return []
    cells = [[" "] * _WIDTH for _ in range(_HEIGHT)]

    def row_of(left_s: float) -> int:
        return round((_HEIGHT - 1) * (1 - min(left_s, top_s) / top_s))

    columns = _by_column(panel.curve, whole_s)
    for column in range(_WIDTH):
        cells[row_of(whole_s * (1 - column / (_WIDTH - 1)))][column] = _TRUTH
    for column, left in columns.items():
        low, middle, high = (row_of(each) for each in left)
        for row in range(high, low + 1):
            if cells[row][column] == " ":
                cells[row][column] = _RANGE
        cells[middle][column] = _MIDDLE
    label = span(top_s)
    margin = len(label)
    lines = [
        f"{label if row == 0 else '0' if row == _HEIGHT - 1 else '':>{margin}} ┤{''.join(line)}"
        for row, line in enumerate(cells)
    ]
    axis = f"{'':>{margin}} └{'─' * _WIDTH}"
    foot = f"{'':>{margin}}  0{span(whole_s):>{_WIDTH - 1}}"
    legend = f"{_TRUTH} time that was left   {_MIDDLE} shown   {_RANGE} its range (10–90 %)"
    return [*(line.rstrip() for line in lines), axis, foot, f"{'':>{margin}}  {legend}"]


def _by_column(
    curve: Sequence[CurvePoint], whole_s: float
) -> dict[int, tuple[float, float, float]]:
    """Return the last that was shown within each column."""
    return {
        min(_WIDTH - 1, int(each.active_s / whole_s * _WIDTH)): each.left
        for each in curve
        if each.left is not None
    }


def svg(title: str, panels: Sequence[Panel]) -> str:
    """Return a picture of all panels, two beside each other, on a light ground."""
    drawn = [each for each in panels if each.whole_s > 0]
    n_rows = -(-len(drawn) // _COLUMNS) or 1
    width = _COLUMNS * (_PANEL_WIDTH + _LEFT) + _GAP
    height = _HEAD + n_rows * (_PANEL_HEIGHT + _FOOT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{_text(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="24" font-size="16" font-weight="650" fill="#16202b">'
        f"{_text(title)}</text>",
        f'<text x="{_LEFT}" y="42" fill="#4e5b69">dashed: the time that was left; line: the time'
        " left that was shown; band: its 10–90 % range; along: active time</text>",
    ]
    for index, panel in enumerate(drawn):
        x = _LEFT + index % _COLUMNS * (_PANEL_WIDTH + _LEFT)
        y = _HEAD + index // _COLUMNS * (_PANEL_HEIGHT + _FOOT + _GAP)
        parts.append(f'<g transform="translate({x} {y})">{_panel(panel)}</g>')
    if not drawn:
        parts.append(f'<text x="{_LEFT}" y="90" fill="#4e5b69">No end to judge by yet.</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> str:
    whole_s, top_s = panel.whole_s, panel.top_s

    def place(active_s: float, left_s: float) -> str:
        x = _PANEL_WIDTH * active_s / whole_s
        y = 20 + _PANEL_HEIGHT * (1 - min(left_s, top_s) / top_s)
        return f"{x:.1f} {y:.1f}"

    bottom = 20 + _PANEL_HEIGHT
    parts = [
        f'<text y="10" font-weight="650" fill="#16202b">{_text(panel.name)}'
        f'<tspan font-weight="400" fill="#4e5b69"> · {_text(panel.said)}</tspan></text>',
        f'<path d="M0 20V{bottom}H{_PANEL_WIDTH}" fill="none" stroke="#6b7784"/>',
    ]
    for stretch in _stretches(panel.curve):
        upper = [place(each.active_s, each.left[2]) for each in stretch if each.left]
        lower = [place(each.active_s, each.left[0]) for each in reversed(stretch) if each.left]
        middle = [place(each.active_s, each.left[1]) for each in stretch if each.left]
        parts.append(f'<path d="M{"L".join([*upper, *lower])}Z" fill="#8db8e8" opacity="0.5"/>')
        parts.append(
            f'<path d="M{"L".join(middle)}" fill="none" stroke="#2468b4" stroke-width="2"/>'
        )
    parts += [
        f'<path d="M{place(0, whole_s)}L{place(whole_s, 0)}" fill="none" stroke="#16202b"'
        ' stroke-dasharray="5 4"/>',
        f'<text x="-6" y="26" text-anchor="end" fill="#4e5b69">{_text(span(top_s))}</text>',
        f'<text x="-6" y="{bottom}" text-anchor="end" fill="#4e5b69">0</text>',
        f'<text x="{_PANEL_WIDTH}" y="{bottom + 16}" text-anchor="end" fill="#4e5b69">'
        f"{_text(span(whole_s))}</text>",
    ]
    return "".join(parts)


def _stretches(curve: Sequence[CurvePoint]) -> list[list[CurvePoint]]:
    """Return the parts of the curve in which something was shown without a gap."""
    found: list[list[CurvePoint]] = [[]]
    for point in curve:
        if point.left is None:
            found.append([])
        else:
            found[-1].append(point)
    return [stretch for stretch in found if len(stretch) > 1]


def _text(words: str) -> str:
    return escape(one_line(words))
