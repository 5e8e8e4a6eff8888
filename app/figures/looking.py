"""Everything that one look at a run has read: the values that its figures are made of.

Shapes only. Invariant: all of a look is of one moment, its `now`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.core.ledger_trouble import NO_LEDGER_TROUBLE, LedgerFacts
from app.core.loads import ServerLoad
from app.core.spec import RunSpec
from app.core.types import PartitionId
from app.core.views import PartitionView, RunView, WorkerView
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a service knows beside the ledger's rows.

    `supervised_at`: when its supervisor last looked at everything without an error.
    """

    loads: Mapping[str, ServerLoad] = field(default_factory=dict)
    ledger: LedgerFacts = NO_LEDGER_TROUBLE
    supervised_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Everything read at one moment."""

    run: RunView
    spec: RunSpec
    now: datetime
    at_s: float
    partitions: Sequence[PartitionView]
    workers: Sequence[WorkerView]
    shares: Mapping[PartitionId, int]
    settings: Settings
    beside: Beside
    is_served: bool

    @property
    def servers(self) -> tuple[ServerLoad, ...]:
        """The run's servers in the order of its spec; one never polled is no more than a name."""
        loads = self.beside.loads
        return tuple(loads.get(url) or ServerLoad(url=url) for url in self.spec.server_urls)
