"""What one submission carries from step to step. A shape only."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock
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
