"""An order to extend many answers: memory does not grow with their number, others can write.

Fills a ledger and one sealed file with truncated answers, extends them all, and holds the growth
of the peak memory and the longest wait of another writer against their bars. Stops by itself.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from pathlib import Path

from app.clock import SystemClock
from app.core.spec import ClassSpec, PartitionSpec, RunSpec, to_json
from app.core.types import Segment
from app.extending import Longer, extend
from app.files.records import Record, encode
from app.ledger import activity, intake_rows, repairs, runs
from app.ledger.activity import Deed
from app.ledger.counters import recount
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.ledger.runs import NewPartition, NewRun

SIZES = (1_000, 10_000)
ANSWER_TOKENS = 1_000
LIMIT_TOKENS = 2_000
GEN_ID = "bench"
BAR_GROWTH_MB = 32.0
BAR_WAIT_S = 2.0  # a worker's tick waits five before it says so


def fill(folder: Path, n: int) -> None:
    """Make a run with one partition of n truncated answers in one sealed file."""
    clock = SystemClock()
    upgrade(folder / "ledger.db")
    ledger = Ledger(folder / "ledger.db")
    spec = RunSpec(
        name="bench",
        server_urls=("http://127.0.0.1:9",),
        prompts_dir="-",
        output_dir=str(folder),
        classes={"short": ClassSpec(concurrency=8, max_new_tokens=ANSWER_TOKENS)},
        partitions={"p": PartitionSpec(class_name="short")},
    )
    new = NewRun(
        name="bench",
        spec_json=to_json(spec),
        output_dir=str(folder),
        token_budget=None,
        fingerprint_json="{}",
        gen_id=GEN_ID,
    )
    partition = NewPartition(
        name="p",
        class_name="short",
        prompts_path="-",
        max_new_tokens=ANSWER_TOKENS,
        own_concurrency=None,
        token_budget=None,
        goal_samples=None,
    )
    run_id = runs.create_run(ledger, new, [partition], clock.now())
    (view,) = runs.partitions_of(ledger, run_id)
    rows = [(k, k, 0, f"a{k}", "pending", f"{k:064x}", None, None, None) for k in range(n)]
    intake_rows.insert_many(ledger, view.id, rows)
    intake_rows.scanned(ledger, view.id)
    intake_rows.all_tokenized(ledger, view.id)
    with ledger.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO shard (id, partition_id, kind, path, committed_bytes, inode)"
            " VALUES (1, ?, 'sealed', ?, 0, 0)",
            (view.id, str(folder / "responses.jsonl")),
        )
        places = _write(folder / "responses.jsonl", n)
        connection.exec_driver_sql(
            "UPDATE sample SET state = 'truncated', prompt_tokens = 4, token_offset = 0,"
            " claim_rank = 1, shard_id = 1, output_tokens = ?, line_offset = ?, line_bytes = ?"
            " WHERE position = ?",
            [(ANSWER_TOKENS, *place) for place in places],
        )
    repairs.rebuild(ledger, view.id)
    ledger.close()


def _write(path: Path, n: int) -> list[tuple[int, int, int]]:
    places, offset = [], 0
    ids = array("I", range(30_000, 30_000 + ANSWER_TOKENS))
    with path.open("wb") as file:
        for k in range(n):
            rid = f"lw00001-00001-{k + 1:010d}-00001-00000000"
            segment = Segment(from_token=0, rid=rid, server="http://127.0.0.1:9", gen_id=GEN_ID)
            record = Record(
                rid=rid,
                key=f"a{k}",
                index=k,
                partition="p",
                status="truncated",
                finish_reason="length",
                prompt_tokens=4,
                completion_tokens=ANSWER_TOKENS,
                max_new_tokens=ANSWER_TOKENS,
                attempts=1,
                segments=(segment,),
                gen_id=GEN_ID,
                started_at=None,
                finished_at=None,
                prompt_sha256=f"{k:064x}",
                text=None,
                output_ids=ids,
            )
            line = encode(record)
            file.write(line)
            places.append((offset, len(line), k))
            offset += len(line)
    return places


def one(folder: Path) -> None:
    """Extend everything while another writer notes something again and again; print figures."""
    ledger = Ledger(folder / "ledger.db")
    run = runs.list_runs(ledger)[0]
    clock = SystemClock()
    stop, waits = threading.Event(), [0.0]

    def write() -> None:
        while not stop.is_set():
            began = time.perf_counter()
            activity.add(ledger, Deed(who="bench", event="tick"), clock.now())
            waits.append(time.perf_counter() - began)
            stop.wait(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    before_kb = _peak_kb()
    began = time.perf_counter()
    wanted = Longer(partition="p", max_new_tokens=LIMIT_TOKENS)
    extend(ledger, run, wanted, who="bench", now=clock.now())
    took_s = time.perf_counter() - began
    stop.set()
    writer.join()
    grown_kb = _peak_kb() - before_kb
    (view,) = runs.partitions_of(ledger, run.id)
    if view.counts.truncated or recount(ledger, view.id):
        raise SystemExit(f"not all were extended: {view.counts}, {recount(ledger, view.id)}")
    print(f"{view.counts.pending} {took_s} {grown_kb / 1024} {max(waits)}")


def _peak_kb() -> int:
    """Return the peak resident memory of this program (the kernel's, begun anew with exec)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        one(Path(sys.argv[2]))
        return 0
    figures = []
    for n in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), n)
            command = [sys.executable, "-m", "benchmarks.extending", "--one", folder]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, env=dict(os.environ)
            )
            n_moved, took_s, grown_mb, wait_s = map(float, done.stdout.split())
            size_mb = sum(each.stat().st_size for each in Path(folder).glob("ledger.db*")) / 2**20
            figures.append((grown_mb, wait_s))
            print(
                f"{int(n_moved):,} answers of {ANSWER_TOKENS:,} tokens: {took_s:.2f} s,"
                f" {n_moved / took_s:,.0f} a second; memory + {grown_mb:.1f} MB;"
                f" longest wait of another writer {wait_s:.2f} s; ledger {size_mb:.0f} MB"
            )
    growth = figures[-1][0] - figures[0][0]
    wait = max(wait_s for _, wait_s in figures)
    print(f"memory of the larger over the smaller: + {growth:.1f} MB, bar {BAR_GROWTH_MB:g} MB")
    print(f"longest wait of another writer: {wait:.2f} s, bar {BAR_WAIT_S:g} s")
    return int(growth > BAR_GROWTH_MB or wait > BAR_WAIT_S)


if __name__ == "__main__":
    sys.exit(main())
