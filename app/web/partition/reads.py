"""What the partition's page takes from the ledger, read each ten seconds at most.

Owns the shape of it and how often. Invariant: every read is bounded, whatever the partition's size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.clock import to_ms
from app.core.spec import RunSpec, from_json
from app.core.spread import Measure, Spread
from app.core.types import PartitionId
from app.core.views import PartitionView
from app.figures import RunFigures
from app.ledger import glimpses, measures, runs
from app.ledger.browsing import SampleEntry
from app.ledger.glimpses import Reason
from app.web.kinds import Desk

N_SAMPLES = 20
_MOST_REASONS = 500
_FRESH_S = 10.0
_TIMES_MS = 48 * 3_600_000
_BY_HOUR = (Measure.FIRST_TOKEN, Measure.LATENCY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`spreads` are of all its answers, `hours` of the last two days: (hour_at_ms, spread)."""

    view: PartitionView
    spec: RunSpec
    samples: Sequence[SampleEntry] = ()
    reasons: Sequence[Reason] = ()
    spreads: Mapping[Measure, Spread] = field(default_factory=dict)
    hours: Mapping[Measure, Sequence[tuple[int, Spread]]] = field(default_factory=dict)

    def spread(self, kind: Measure) -> Spread:
        return self.spreads.get(kind, Spread())


def read(desk: Desk, run: RunFigures, partition_id: PartitionId) -> Read:
    """Return all of it, as it was within the last ten seconds."""

    def made() -> Read:
        ledger, since_ms = desk.ledger, to_ms(run.at) - _TIMES_MS
        return Read(
            view=runs.get_partition(ledger, partition_id),
            spec=from_json(runs.get_run(ledger, run.run_id).spec_json),
            samples=glimpses.furthest(ledger, partition_id, N_SAMPLES),
            reasons=glimpses.reasons(ledger, partition_id, _MOST_REASONS),
            spreads={kind: measures.spread(ledger, partition_id, kind) for kind in Measure},
            hours={
                kind: measures.by_hour(ledger, partition_id, kind, since_ms) for kind in _BY_HOUR
            },
        )

    return desk.fresh.get(("partition", partition_id), _FRESH_S, made)
