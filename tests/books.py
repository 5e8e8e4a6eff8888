"""What stands in the ledger and in the shards after a test, read the plain way.

Owns no judgement of a single case; `assert_each_once` is what holds in every one of them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import text

from app.core.states import KEPT
from app.core.types import PartitionId
from app.files.shards import read_line
from app.ledger.db import Ledger


def rows(ledger: Ledger, partition_id: PartitionId) -> dict[str, Mapping[str, Any]]:
    """Return each sample as the ledger has it, by its key."""
    with ledger.read() as connection:
        found = connection.execute(
            text(
                "SELECT s.*, h.path FROM sample s LEFT JOIN shard h ON h.id = s.shard_id"
                " WHERE s.partition_id = :id ORDER BY s.position"
            ),
            {"id": partition_id},
        )
        return {row["key"]: dict(row) for row in found.mappings()}


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return every line of the folder's shards; each must be strict JSON with its newline."""
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("responses*.jsonl")):
        content = path.read_bytes()
        assert content[-1:] in (b"\n", b"")
        found += [orjson.loads(line) for line in content.split(b"\n")[:-1]]
    return found


def assert_each_once(
    samples: Mapping[str, Mapping[str, Any]], written: Sequence[Mapping[str, Any]]
) -> None:
    """Check that each kept sample has one line, where the ledger says, and no other has one."""
    kept = {key: row for key, row in samples.items() if row["state"] in KEPT}
    assert sorted(line["id"] for line in written) == sorted(kept)
    for key, row in kept.items():
        line = orjson.loads(read_line(Path(row["path"]), row["line_offset"], row["line_bytes"]))
        assert (line["id"], line["status"]) == (key, row["state"])
        assert len(line["output_ids"]) == line["completion_tokens"] == row["output_tokens"]
