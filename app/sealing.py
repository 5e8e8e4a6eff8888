"""Seals a finished partition: its valid lines, in input order, as one `responses.jsonl`.

Order: temporary file, fsync, rename, seal row and pointers in one transaction, then the shards
are removed. A crash between any two leaves either the shards with their pointers, or the sealed
file with its; what is left over is removed at the next start.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from app.core.types import SampleId
from app.core.views import PartitionView
from app.events import Observer, PartitionSealed
from app.files.sealed import LineSource, write_sealed
from app.ledger import shards
from app.ledger.db import Ledger
from app.reports import write_failed, write_rejected
from app.seams import Seam, seam

OUTPUT_NAME = "responses.jsonl"
_PAGE = 2_000


def seal(
    ledger: Ledger, partition: PartitionView, output_dir: Path, now: datetime, observer: Observer
) -> None:
    """Write the sealed output and the reports beside it. The partition must have no worker."""
    folder = output_dir / partition.name
    target = folder / OUTPUT_NAME
    places: list[tuple[SampleId, int, int]] = []
    with LineSource() as source:
        facts = write_sealed(target, _lines(ledger, partition, source, places))
    write_rejected(ledger, partition, folder)
    write_failed(ledger, partition, folder)
    sealed = shards.Sealed(
        path=str(target), size_bytes=facts.size_bytes, inode=facts.inode, places=places
    )
    for spare in shards.record_seal(ledger, partition.id, sealed, now):
        Path(spare.path).unlink(missing_ok=True)
    seam(Seam.SEAL_SHARDS_REMOVED)
    observer(PartitionSealed(partition=partition.name, n_lines=facts.n_lines, path=str(target)))


def _lines(
    ledger: Ledger,
    partition: PartitionView,
    source: LineSource,
    places: list[tuple[SampleId, int, int]],
) -> Iterator[bytes]:
    """Yield the valid lines in input order and note where each will stand."""
    after, offset = -1, 0
    while page := shards.valid_lines(ledger, partition.id, after, _PAGE):
        for position, place in page:
            line = source.read(Path(place.path), place.offset, place.n_bytes)
            places.append((place.sample_id, offset, len(line)))
            offset += len(line)
            after = position
            yield line


def remove_leftovers(ledger: Ledger, partition: PartitionView, output_dir: Path) -> list[str]:
    """Remove shards that a sealed output has replaced, if a crash left them; return their names."""
    known = {view.path for view in shards.present(ledger, partition.id)}
    removed = []
    for path in (output_dir / partition.name).glob("responses-*.jsonl"):
        if str(path) not in known and shards.is_replaced(ledger, str(path)):
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return removed
