"""From when on the outcomes and the speed of a run are remarked upon: its own thresholds.

Owns names, defaults, bounds and what each means; they stand in `[run]` of a spec and change freely.
What is of the machine (disk, ledger, storage) is set for the service. Pure. Invariant: a value
outside its bounds is named, never bent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

_MOST_S = 30 * 86_400.0
_MOST_OUTCOMES = 100_000


def _of(default: float, low: float, high: float, about: str) -> Any:
    return field(default=default, metadata={"low": low, "high": high, "about": about})


def _share(default: float, about: str) -> Any:
    return _of(default, 0.001, 1.0, about)


def _window(default: int, about: str) -> Any:
    return _of(default, 5, _MOST_OUTCOMES, about)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunThresholds:
    """Shares are 0 to 1, windows count the outcomes that ended last."""

    slow_ratio: float = _of(
        0.5, 0.01, 0.99, "slow: speed below this share of the best sustained one"
    )
    slow_after_s: float = _of(600.0, 3.0, _MOST_S, "slow: for so long without a break")
    failing_share: float = _share(0.1, "failing: more than this share failed")
    failing_window: int = _window(100, "failing: of so many outcomes")
    truncated_share: float = _share(0.5, "many truncated: more than this share ended by length")
    truncated_window: int = _window(30, "many truncated: of so many outcomes")
    suspect_share: float = _share(0.2, "many degenerate: more than this share repeats itself")
    suspect_window: int = _window(50, "many degenerate: of so many outcomes")
    empty_share_pause: float = _share(0.5, "many empty: more than this share is empty")
    empty_window: int = _window(20, "many empty: of so many outcomes")
    mismatch_share_pause: float = _share(
        0.5, "many mismatched: more than this share was prompted with another number of tokens"
    )
    mismatch_window: int = _window(20, "many mismatched: of so many attempts")
    auto_pause: bool = field(
        default=True,
        metadata={"about": "pause where going on makes only waste: many empty or mismatched"
                  " answers pause the partition, another model on the server pauses the run"},
    )  # fmt: skip


THRESHOLD_KEYS = frozenset(one.name for one in fields(RunThresholds))


def stored_thresholds(stored: Mapping[str, Any] | None) -> RunThresholds:
    """Return thresholds as they were stored; keys that this version does not know are left out."""
    values = {name: one for name, one in (stored or {}).items() if name in THRESHOLD_KEYS}
    return RunThresholds(**values)


def threshold_problems(thresholds: RunThresholds) -> Iterator[str]:
    """Name each value outside its bounds."""
    for one in fields(RunThresholds):
        value = getattr(thresholds, one.name)
        if not isinstance(value, bool):
            low, high = one.metadata["low"], one.metadata["high"]
            if not low <= value <= high:
                yield f"{one.name} is {value:g}, not a number from {low:,.10g} to {high:,.10g}"
