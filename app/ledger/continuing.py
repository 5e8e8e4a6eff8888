"""What a claimed sample may keep of its checkpoint: decided at the claim, in its transaction.

Invariant: what is cut off was received and counts as wasted from then on, but not what the
sample's valid line has: that stays kept until a newer line is settled.
"""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from app.core.continuation import continuable_tokens
from app.core.types import Claim
from app.ledger.checkpoints import cut
from app.ledger.counters import Deltas


def continued(
    connection: Connection,
    claimed: Claim,
    gen_id: str,
    sampling: Mapping[str, object],
    deltas: Deltas,
) -> Claim:
    """Return the claim with what may be kept of its checkpoint; the rest is counted as wasted."""
    if not claimed.held:
        return claimed
    parameters = {**sampling, **claimed.sampling}
    keep = continuable_tokens(len(claimed.held), claimed.segments, gen_id, parameters)
    dropped = len(claimed.held) - keep
    if not dropped:
        return claimed
    cut(connection, claimed.sample_id, keep)
    line_tokens = min(claimed.line_tokens, keep)
    wasted = dropped - (claimed.line_tokens - line_tokens)
    deltas.held_tokens -= wasted
    deltas.wasted_tokens += wasted
    segments = tuple(each for each in claimed.segments if each.from_token < keep)
    return replace(claimed, held=claimed.held[:keep], segments=segments, line_tokens=line_tokens)
