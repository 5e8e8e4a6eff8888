"""After a death: makes shards and ledger agree, and gives dead workers' samples back.

For each worker that is certainly dead: whole lines behind the committed offset are adopted if
their request id is the running attempt's, a torn tail is cut, the rest is put back uncharged. A
file whose size or inode is not what the ledger says is compared whole, in linear time; otherwise
nothing is scanned. Safe to repeat at any point.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from app.core.format import plural
from app.core.reconcile import LineFact, Repairs, reconcile
from app.core.rids import parse_rid
from app.core.states import SampleState
from app.core.types import PartitionId, SampleId, WorkerId
from app.core.views import PartitionView, ShardView
from app.errors import StorageError
from app.events import Observer, Recovered
from app.files.records import ParsedLine
from app.files.tails import FileFacts, ScannedLine, read_tail, rewrite, scan_lines, stat
from app.ledger import activity, repairs, shards, workers
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.repairs import Adopted
from app.seams import Seam, seam


def bury_worker(
    ledger: Ledger,
    partition: PartitionView,
    worker_id: WorkerId,
    reason: str,
    now: datetime,
    observer: Observer,
) -> int:
    """Adopt what a dead worker had written, put the rest of its samples back; return how many.

    Its process must have been reaped, or the home's lock must have become free.
    """
    for shard in shards.present(ledger, partition.id):
        if shard.worker_id == worker_id:
            _adopt_tail(ledger, partition, shard, observer)
    return workers.bury(ledger, worker_id, reason, now)


def tell_lost(
    ledger: Ledger, partition: PartitionView, reason: str, n_samples: int, now: datetime
) -> None:
    """Make the death of a partition's worker an entry of its run's activity."""
    deed = Deed(
        who="system",
        event="worker lost",
        detail=f"{partition.name}: {reason}; {plural(n_samples, 'request')} put back, to go on",
        run_id=partition.run_id,
        partition_id=partition.id,
    )
    activity.add(ledger, deed, now)


def _adopt_tail(
    ledger: Ledger, partition: PartitionView, shard: ShardView, observer: Observer
) -> None:
    path = Path(shard.path)
    facts = stat(path)
    if facts is None or facts.size_bytes <= shard.committed_bytes:
        return  # nothing new; a file that is too short is compared whole by `check_files`
    tail = read_tail(path, shard.committed_bytes)
    running = repairs.running_attempts(ledger, _owner(shard))
    adopted = [
        _adopted(shard, line, line.parsed)
        for line in tail.lines
        if line.parsed is not None and _is_running(line.parsed, running)
    ]
    end = max((line.offset + line.n_bytes for line in adopted), default=shard.committed_bytes)
    if len(adopted) != len(tail.lines) or end != facts.size_bytes:
        end = _cut_to(path, shard, adopted)
    repairs.adopt(ledger, partition.id, adopted, (shard.id, end, facts.inode))
    observer(
        Recovered(
            partition=partition.name,
            what=f"{path.name}: {len(adopted)} of {len(tail.lines)} unrecorded lines adopted,"
            f" torn tail of {tail.torn_bytes} bytes cut",
        )
    )


def _owner(shard: ShardView) -> WorkerId:
    if shard.worker_id is None:
        raise StorageError(f"{shard.path} is not a worker's shard")
    return shard.worker_id


def _is_running(parsed: ParsedLine, running: dict[SampleId, repairs.RunningAttempt]) -> bool:
    rid = parse_rid(parsed.rid)
    attempt = running.get(SampleId(rid.sample_id)) if rid else None
    return (
        rid is not None
        and attempt is not None
        and (attempt.attempt, attempt.salt) == (rid.attempt, rid.salt)
    )


def _adopted(shard: ShardView, line: ScannedLine, parsed: ParsedLine) -> Adopted:
    rid = parse_rid(parsed.rid)
    if rid is None:
        raise StorageError(f"{shard.path}: a line with the foreign request id {parsed.rid!r}")
    return Adopted(
        sample_id=SampleId(rid.sample_id),
        shard_id=shard.id,
        offset=line.offset,
        n_bytes=line.length,
        output_tokens=parsed.completion_tokens,
        state=SampleState(parsed.status),
        finish_reason=parsed.finish_reason or "",
        flags=",".join(parsed.flags) or None,
        prompt_tokens=parsed.prompt_tokens,
        ended_at_ms=parsed.finished_at_ms,
    )


def _cut_to(path: Path, shard: ShardView, adopted: Sequence[Adopted]) -> int:
    """Cut the file behind the last adopted line.

    Lines that are not adopted between adopted ones stay as dead bytes: nothing points to them,
    and sealing reads by pointer.
    """
    end = max((line.offset + line.n_bytes for line in adopted), default=shard.committed_bytes)
    os.truncate(path, end)
    seam(Seam.SHARD_CUT)
    return end


def check_files(
    ledger: Ledger, partition: PartitionView, known_gen_ids: frozenset[str], observer: Observer
) -> bool:
    """Compare each answer file that is not what the ledger last saw; return if any was repaired.

    Only for a partition without a living worker, after its dead ones are buried.
    """
    repaired = False
    for shard in shards.present(ledger, partition.id):
        facts = stat(Path(shard.path))
        if _is_as_recorded(shard, facts):
            continue
        repaired = True
        _compare_whole(ledger, partition, shard, facts, known_gen_ids, observer)
    return repaired


def _is_as_recorded(shard: ShardView, facts: FileFacts | None) -> bool:
    if facts is None:
        return shard.committed_bytes == 0 and shard.kind == "shard"
    return facts.size_bytes == shard.committed_bytes and facts.inode == shard.inode


def _compare_whole(
    ledger: Ledger,
    partition: PartitionView,
    shard: ShardView,
    facts: FileFacts | None,
    known_gen_ids: frozenset[str],
    observer: Observer,
) -> None:
    path = Path(shard.path)
    lines = list(scan_lines(path)) if facts is not None else []
    found = {line.offset: line for line in lines if line.parsed is not None}
    samples = repairs.sample_facts(ledger, partition.id, shard.id)
    plan = reconcile(_line_facts(found.values()), samples, known_gen_ids)
    kept = sorted((*plan.keep, *plan.adopt), key=lambda line: line.offset)
    offsets = _rewritten(path, kept, facts)
    _record(ledger, partition.id, shard, plan, dict(zip(kept, offsets, strict=True)), found)
    what = f"{path.name}: {plan.in_words()}{_unreadable_in_words(lines)}"
    observer(Recovered(partition=partition.name, what=what))


def _unreadable_in_words(lines: Iterable[ScannedLine]) -> str:
    torn_bytes = sum(line.length for line in lines if line.is_torn)
    n_foreign = sum(line.parsed is None and not line.is_torn for line in lines)
    foreign = f", {n_foreign} unreadable lines dropped" if n_foreign else ""
    return foreign + (f", torn tail of {torn_bytes} bytes cut" if torn_bytes else "")


def _line_facts(lines: Iterable[ScannedLine]) -> Iterable[LineFact]:
    for line in lines:
        rid = parse_rid(line.parsed.rid) if line.parsed else None
        if line.parsed is None or rid is None:
            continue
        yield LineFact(
            offset=line.offset,
            n_bytes=line.length,
            sample_id=SampleId(rid.sample_id),
            attempt=rid.attempt,
            prompt_sha256=line.parsed.prompt_sha256,
            gen_id=line.parsed.gen_id,
        )


def _rewritten(path: Path, kept: Sequence[LineFact], facts: FileFacts | None) -> list[int]:
    """Leave exactly the kept lines in the file; return where they stand now."""
    if facts is None:
        return []
    offsets = [line.offset for line in kept]
    total = sum(line.n_bytes for line in kept)
    if total == facts.size_bytes:
        return offsets
    return rewrite(path, [(line.offset, line.n_bytes) for line in kept])


def _record(
    ledger: Ledger,
    partition_id: PartitionId,
    shard: ShardView,
    plan: Repairs,
    places: dict[LineFact, int],
    found: dict[int, ScannedLine],
) -> None:
    """Bring the ledger to what the file now holds. Each step may be repeated after a crash."""
    repairs.rebuild(ledger, partition_id)  # rows changed by hand have not moved the counters
    moved = [(line.sample_id, places[line], line.n_bytes) for line in plan.keep]
    repairs.move_lines(ledger, moved, shard.id)
    repairs.lose_lines(ledger, partition_id, plan.lose)
    facts = stat(Path(shard.path))
    size_bytes, inode = (facts.size_bytes, facts.inode) if facts else (0, 0)
    adopted = [_adopted_at(shard, line, found[line.offset], places[line]) for line in plan.adopt]
    repairs.adopt(ledger, partition_id, adopted, (shard.id, size_bytes, inode))
    repairs.rebuild(ledger, partition_id)


def _adopted_at(shard: ShardView, line: LineFact, scanned: ScannedLine, offset: int) -> Adopted:
    if scanned.parsed is None:
        raise StorageError(f"{shard.path}: the line at {line.offset} cannot be read")
    return replace(_adopted(shard, scanned, scanned.parsed), offset=offset)
