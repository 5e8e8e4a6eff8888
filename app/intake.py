"""The first phase of intake: every byte of a prompt file becomes sample rows, or a reason.

Owns the order of samples (`position = record number * samples_per_prompt + replica`, further by
the turns of conversations that stand before and are asked turn by turn) and what the load report
says. Does not tokenize and asks no server. Invariant: a partition leaves `scanning`
only when its file was read to the end; one that died in between begins again from nothing.
Runs in a thread; `say` is called from it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import orjson

from app.core.format import plural
from app.core.spec import RunSpec
from app.core.states import SampleState
from app.core.turns import turn_key
from app.core.views import PartitionView
from app.errors import InputError
from app.files.prompt_ids import DuplicateIds
from app.files.prompts import Prompt, Rejected, scan
from app.ledger import intake_rows
from app.ledger.db import Ledger
from app.ledger.intake_rows import NewSample
from app.sglang.protocol import check_sampling

BATCH = 5_000
SHOWN_REJECTED = 20
_LONG_FILE_BYTES = 50_000_000
# As plain texts: the driver adapts a subclass of str one by one, which costs a third of the scan.
_PENDING, _REJECTED = SampleState.PENDING.value, SampleState.REJECTED.value

Say = Callable[[str], None]
Look = Callable[[Prompt | Rejected], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """What was found in a prompt file; `rejected` and `duplicates` are the first, as sentences."""

    partition: str
    n_records: int
    n_samples: int
    n_rejected: int
    rejected: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()

    def in_words(self) -> str:
        said = [
            f"{self.partition}: {plural(self.n_records, 'record')}, {self.n_rejected:,} rejected"
        ]
        if self.rejected:
            rest = self.n_rejected - len(self.rejected)
            more = f"; and {rest:,} more" if rest else ""
            said.append(f" ({'; '.join(self.rejected)}{more})")
        if self.duplicates:
            said.append(f"; the same id more than once: {', '.join(self.duplicates)}")
        return "".join(said)


def scan_partition(ledger: Ledger, partition: PartitionView, spec: RunSpec, say: Say) -> ScanReport:
    """Read the partition's prompt file whole and insert its samples.

    InputError if the file cannot be read to its end, or has an id twice under `strict_ids`; the
    partition is then still `scanning`.
    """
    intake_rows.empty_partition(ledger, partition.id)

    def insert(rows: list[NewSample]) -> None:
        intake_rows.insert_many(ledger, partition.id, rows)

    report = _read(partition.name, Path(partition.prompts_path), spec, say, insert)
    intake_rows.scanned(ledger, partition.id)
    return report


def count_records(
    name: str, path: Path, spec: RunSpec, say: Say, look: Look | None = None
) -> ScanReport:
    """Read a prompt file whole as `scan_partition` would, and keep nothing of it.

    `look` is shown every record; what it raises ends the reading.
    """
    return _read(name, path, spec, say, lambda _: None, look)


def _read(
    name: str,
    path: Path,
    spec: RunSpec,
    say: Say,
    take: Callable[[list[NewSample]], None],
    look: Look | None = None,
) -> ScanReport:
    collected = _Collected(spec.samples_per_prompt)
    for rows in _batches(path, collected, _progress(name, say), look):
        take(rows)
    if collected.duplicates and spec.strict_ids:
        twice = "; ".join(collected.duplicates.sentences())
        raise InputError(
            f"{path} has the same id more than once: {twice}",
            hint="make the ids differ, or leave strict_ids out",
        )
    return ScanReport(
        partition=name,
        n_records=collected.n_records,
        n_samples=(collected.n_records - collected.n_rejected) * spec.samples_per_prompt
        + collected.n_rejected
        + collected.n_later,
        n_rejected=collected.n_rejected,
        rejected=tuple(collected.rejected),
        duplicates=tuple(collected.duplicates.sentences()),
    )


def _progress(name: str, say: Say) -> Callable[[int, int], None]:
    """Say every tenth of a long file."""
    told = 0

    def progress(done_bytes: int, size_bytes: int) -> None:
        nonlocal told
        tenth = 10 * done_bytes // size_bytes if size_bytes else 10
        if size_bytes >= _LONG_FILE_BYTES and tenth > told:
            told = tenth
            say(f"{name}: {tenth * 10} % of {size_bytes:,} bytes read")

    return progress


class _Collected:
    """What the scan has seen so far, and the rows of a record."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.n_records = 0
        self.n_rejected = 0
        self.n_later = 0  # samples of turns behind the first of their conversation
        self.rejected: list[str] = []
        self.duplicates = DuplicateIds()

    def rows_of(self, prompt: Prompt) -> list[NewSample]:
        """Return a record's samples, or its one rejected row if its sampling cannot be sent."""
        sampling = {name: one for name, one in prompt.sampling.items() if name != "max_new_tokens"}
        try:
            check_sampling(sampling, None)
        except InputError as error:
            return [self.reject(prompt.index, prompt.line, prompt.key, error.message)]
        packed = orjson.dumps(sampling).decode() if sampling else None
        limit = prompt.sampling.get("max_new_tokens")
        first = prompt.index * self.replicas + self.n_later
        n_turns = 1 + len(prompt.later)
        self.n_later += len(prompt.later) * self.replicas
        rows: list[NewSample] = []
        for replica, turn in product(range(self.replicas), range(1, n_turns + 1)):
            row = (
                first + replica * n_turns + turn - 1,
                prompt.index,
                replica,
                turn_key(prompt.key, turn),
                _PENDING,
                prompt.prompt_sha256 if turn == 1 else "",
                packed,
                None,
                limit if isinstance(limit, int) else None,
            )
            rows.append(row if n_turns == 1 else (*row, turn, turn < n_turns))
        return rows

    def reject(self, index: int, line: int, key: str | None, reason: str) -> NewSample:
        """Note a record that is no prompt; it has one row, however many replicas there are."""
        self.n_rejected += 1
        if len(self.rejected) < SHOWN_REJECTED:
            self.rejected.append(f"line {line:,}: {reason}")
        shown = str(index) if key is None else key
        position = index * self.replicas + self.n_later
        return (position, index, 0, shown, _REJECTED, "", None, reason, None)


def _shown(records: Iterator[Prompt | Rejected], look: Look) -> Iterator[Prompt | Rejected]:
    for record in records:
        look(record)
        yield record


def _batches(
    path: Path,
    collected: _Collected,
    progress: Callable[[int, int], None],
    look: Look | None,
) -> Iterator[list[NewSample]]:
    rows: list[NewSample] = []
    note = collected.duplicates.add
    is_plain = collected.replicas == 1
    records = scan(path, on_progress=progress)
    for record in records if look is None else _shown(records, look):
        collected.n_records += 1
        if isinstance(record, Rejected):
            rows.append(collected.reject(record.index, record.line, record.key, record.reason))
        else:
            index, line, key, _, _, _, _, sampling, _, digest, later = record
            note(key, line)
            if is_plain and not sampling and not later:
                position = index + collected.n_later
                rows.append((position, index, 0, key, _PENDING, digest, None, None, None))
            else:
                for turn in range(2, 2 + len(later)):
                    note(turn_key(key, turn), line)
                rows.extend(collected.rows_of(record))
        if len(rows) >= BATCH:
            yield rows
            rows = []
    yield rows
