"""Blocking work off the event loop, always to its end.

Owns one promise: when `in_thread` returns or raises, its work no longer runs, even if the caller
was cancelled meanwhile. Otherwise a successor could write the same file at the same time.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Return what the work returns; a cancellation is passed on after the work has ended."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise
