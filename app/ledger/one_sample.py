"""One sample whole: its row, what it has held, its failed attempts, and where its line stands.

Read only; every statement finds its rows by the sample's id. Invariant: a sample of another run is
not found.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text

from app.clock import from_ms
from app.core.types import RunId, SampleId
from app.errors import NotFoundError
from app.ledger.browsing import SAMPLE_COLUMNS, SampleEntry, sample_entry
from app.ledger.db import Ledger

MAX_ATTEMPTS_SHOWN = 200
_BYTES_PER_TOKEN = 4  # ids are packed as uint32


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEntry:
    """An attempt that kept nothing, or was put back through somebody's fault."""

    attempt: int
    at: datetime
    is_charged: bool
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEntry:
    """Where the ledger says that a sample's valid line stands."""

    path: str
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldEntry:
    """Whose request made the held tokens from `from_token` on."""

    from_token: int
    rid: str
    server: str
    gen_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleWhole:
    """One sample; `attempts` are the latest of its history, oldest first.

    `token_offset` is where its prompt begins in the partition's token file, None until tokenized.
    """

    entry: SampleEntry
    prompt_sha256: str
    max_new_tokens: int
    n_checkpoints: int
    checkpoint_tokens: int
    attempts: tuple[AttemptEntry, ...]
    line: LineEntry | None
    token_offset: int | None = None
    held: tuple[HeldEntry, ...] = ()


def whole_sample(ledger: Ledger, run_id: RunId, sample_id: SampleId) -> SampleWhole:
    """Return one sample of a run; NotFoundError if it has none of that id."""
    with ledger.read() as connection:
        row = connection.execute(
            text(
                f"SELECT {SAMPLE_COLUMNS}, s.prompt_sha256, s.token_offset, s.line_offset,"
                " s.line_bytes, h.path,"
                " coalesce(s.max_new_tokens, p.max_new_tokens) AS max_new_tokens FROM sample s"
                " JOIN partition p ON p.id = s.partition_id LEFT JOIN shard h ON h.id = s.shard_id"
                " WHERE s.id = :id AND p.run_id = :run"
            ),
            {"id": sample_id, "run": run_id},
        ).first()
        if row is None:
            raise NotFoundError(
                f"run {run_id} has no sample with the id {sample_id}",
                hint=f"/api/v1/runs/{run_id}/samples lists them",
            )
        held = connection.execute(
            text(
                "SELECT count(*) AS n, coalesce(sum(length(ids)), 0) AS n_bytes FROM checkpoint"
                " WHERE sample_id = :id"
            ),
            {"id": sample_id},
        ).one()
        made = connection.execute(
            text(
                "SELECT min(from_token) AS from_token, rid, server, gen_id FROM checkpoint"
                " WHERE sample_id = :id GROUP BY rid ORDER BY from_token LIMIT :most"
            ),
            {"id": sample_id, "most": MAX_ATTEMPTS_SHOWN},
        ).all()
        attempts = connection.execute(
            text("SELECT * FROM attempt WHERE sample_id = :id ORDER BY id DESC LIMIT :most"),
            {"id": sample_id, "most": MAX_ATTEMPTS_SHOWN},
        ).all()
    return SampleWhole(
        entry=sample_entry(row),
        prompt_sha256=row.prompt_sha256,
        max_new_tokens=row.max_new_tokens,
        n_checkpoints=held.n,
        checkpoint_tokens=held.n_bytes // _BYTES_PER_TOKEN,
        attempts=tuple(_attempt(each) for each in reversed(attempts)),
        line=None
        if row.path is None or row.line_offset is None
        else LineEntry(path=row.path, offset=row.line_offset, n_bytes=row.line_bytes),
        token_offset=row.token_offset,
        held=tuple(
            HeldEntry(
                from_token=each.from_token, rid=each.rid, server=each.server, gen_id=each.gen_id
            )
            for each in made
        ),
    )


def _attempt(row: Row[Any]) -> AttemptEntry:
    return AttemptEntry(
        attempt=row.attempt,
        at=from_ms(row.at_ms),
        is_charged=bool(row.charged),
        tokens=row.tokens,
        reason=row.reason,
    )
