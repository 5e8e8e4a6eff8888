"""Time, as a value that can be handed in: the only module that reads the machine's clocks.

Wall time (`now`, aware UTC) is for records, monotonic seconds for durations.
Everything that decides by time takes a `Clock`, or a `now` read once per step.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    async def sleep(self, delay_s: float) -> None:
        """Wait."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


def to_ms(moment: datetime) -> int:
    """Return milliseconds since 1970, the one form in which the ledger keeps a moment.

    In whole numbers: by way of a float, a moment read from the ledger may come back 1 ms earlier.

    >>> to_ms(from_ms(1_767_225_845_001))
    1767225845001
    """
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(moment_ms: int) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1000, UTC)


def iso(moment: datetime) -> str:
    """Return ISO 8601 with offset, milliseconds.

    >>> iso(from_ms(1_700_000_000_123))
    '2023-11-14T22:13:20.123+00:00'
    """
    return moment.isoformat(timespec="milliseconds")
