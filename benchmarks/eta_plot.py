"""The plot of benchmarks/eta.py: median absolute error against the share of the work done.

Owns the drawing only: one SVG with a panel for each kind of work, no library.
"""

from collections.abc import Mapping, Sequence
from math import log10
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _GAP, _TOP, _LEFT = 330, 260, 70, 60, 60
_COLOURS = ("#0b57d0", "#b3261e", "#7a5c00", "#2e7d32", "#6b3fa0")
_LOWEST, _HIGHEST = 0.005, 2.0
_LEGEND_STEP = 20

# name of the panel: name of the line: (share of work, median absolute error)
Panels = Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]


def draw(panels: Panels) -> str:
    """Return the plot as SVG text; both axes are logarithmic."""
    names = list(next(iter(panels.values())))
    width = _LEFT + len(panels) * (_WIDTH + _GAP)
    height = _TOP + _HEIGHT + 70 + _LEGEND_STEP * len(names)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(_LEFT, 24, "Error of the remaining time, against the share of the work done", 16),
    ]
    for place, (title, lines) in enumerate(panels.items()):
        out += _panel(_LEFT + place * (_WIDTH + _GAP), title, lines)
    for i, name in enumerate(names):
        y = _TOP + _HEIGHT + 64 + _LEGEND_STEP * i
        colour = _COLOURS[i % len(_COLOURS)]
        out.append(f'<path d="M{_LEFT} {y - 4}h30" stroke="{colour}" stroke-width="2.5"/>')
        out.append(_text(_LEFT + 40, y, name))
    return "\n".join([*out, "</svg>", ""])


def _panel(
    left: float, title: str, lines: Mapping[str, Sequence[tuple[float, float]]]
) -> list[str]:
    out = [_text(left, _TOP - 10, title, 13)]
    for share in (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.9):
        x = left + _x(share)
        out.append(f'<path d="M{x:.1f} {_TOP}v{_HEIGHT}" stroke="#e3e6ea"/>')
        out.append(_text(x, _TOP + _HEIGHT + 16, f"{share * 100:g}", anchor="middle"))
    for error in (0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0):
        y = _TOP + _y(error)
        out.append(f'<path d="M{left} {y:.1f}h{_WIDTH}" stroke="#e3e6ea"/>')
        out.append(_text(left - 6, y + 4, f"{error * 100:g} %", anchor="end"))
    out.append(
        _text(left + _WIDTH / 2, _TOP + _HEIGHT + 34, "per cent of the work done", anchor="middle")
    )
    for i, points in enumerate(lines.values()):
        path = " ".join(f"{left + _x(x):.1f},{_TOP + _y(y):.1f}" for x, y in points)
        colour = _COLOURS[i % len(_COLOURS)]
        wide = 3 if i == 0 else 1.5
        out.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{wide}"/>'
        )
    return out


def _x(share: float) -> float:
    return _WIDTH * (log10(share) + 2) / 2


def _y(error: float) -> float:
    error = min(_HIGHEST, max(_LOWEST, error))
    return _HEIGHT * (1 - log10(error / _LOWEST) / log10(_HIGHEST / _LOWEST))


def _text(x: float, y: float, words: str, size: int = 12, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
        f' fill="#1f2933">{escape(words)}</text>'
    )
