"""What one submission carries from step to step, and how it speaks from its thread."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.clock import Clock
from app.core.deadlines import is_by_deadline
from app.core.states import RunState
from app.core.views import RunView
from app.ledger.db import Ledger
from app.preflight import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    ledger: Ledger
    home: Path
    report: Report
    accept_changes: bool
    who: str
    clock: Clock
    say: Callable[[str], None]
    started_at: datetime | None = None
    """When the service started for this very submission; None if it was serving already."""

    def leaves_stopped(self, run: RunView) -> bool:
        """Return whether a deadline that passed while nobody served has just stopped the run.

        Started for the run, the service keeps that deadline first; to start it once more goes on.
        """
        is_stopped = run.state is RunState.STOPPED and is_by_deadline(run.reason)
        return is_stopped and self.started_at is not None and run.state_since >= self.started_at


def on_loop(say: Callable[[str], None]) -> Callable[[str], None]:
    """Return what a thread may call, so that `say` is called on the loop of the caller."""
    loop = asyncio.get_running_loop()

    def saying(words: str) -> None:
        loop.call_soon_threadsafe(say, words)

    return saying
