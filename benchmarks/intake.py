"""What scanning 100,000 prompts costs, beside a bare loop that parses and inserts as many rows.

    python -m benchmarks.intake [ROWS]

Prints processor seconds of both, medians of interleaved rounds, and the median of their ratios.
Bar: at most 2. About half a minute.
"""

import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

import orjson

from app.clock import SystemClock
from app.core.spec import ClassSpec, RunSpec
from app.intake import scan_partition
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.ledger.runs import NewPartition, NewRun

ROUNDS = 5
BAR = 2.0
BATCH = 5_000


def write_prompts(path: Path, n: int) -> None:
    words = "the quick brown fox jumps over the lazy dog and says something of some length "
    with path.open("wb") as file:
        for number in range(n):
            content = f"Task {number}: {words * (1 + number % 12)}"
            row = {"id": f"row-{number}", "messages": [{"role": "user", "content": content}]}
            file.write(orjson.dumps(row) + b"\n")


def bare(folder: Path, prompts: Path) -> float:
    """Parse and insert, with the columns and indexes that the ledger's own table has."""
    path = folder / "bare.db"
    path.unlink(missing_ok=True)
    upgrade(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    insert = (
        "INSERT INTO sample (partition_id, position, record_index, replica, key, state,"
        " prompt_sha256, sampling_json, reason, max_new_tokens, attempt, charged, server_deaths,"
        " alone, rid_salt, not_before_at_ms, held_tokens, output_tokens)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0)"
    )
    digest = "0" * 64
    began = time.process_time()
    rows: list[tuple[object, ...]] = []
    with prompts.open("rb") as file:
        for index, line in enumerate(file):
            record = orjson.loads(line)
            rows.append((1, index, index, 0, record["id"], "pending", digest, None, None, None))
            if len(rows) == BATCH:
                insert_all(connection, insert, rows)
                rows = []
    insert_all(connection, insert, rows)
    spent = time.process_time() - began
    connection.close()
    return spent


def insert_all(connection: sqlite3.Connection, insert: str, rows: list[tuple[object, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(insert, rows)
    connection.execute("COMMIT")


def ours(folder: Path, prompts: Path) -> float:
    path = folder / "ours.db"
    path.unlink(missing_ok=True)
    upgrade(path)
    ledger = Ledger(path)
    run = NewRun(
        name="r", spec_json="{}", output_dir="-", token_budget=None, fingerprint_json="{}",
        gen_id="g",
    )  # fmt: skip
    one = NewPartition(
        name="p", class_name="c", prompts_path=str(prompts), max_new_tokens=1,
        own_concurrency=None, token_budget=None, goal_samples=None,
    )  # fmt: skip
    run_id = runs.create_run(ledger, run, [one], SystemClock().now())
    (partition,) = runs.partitions_of(ledger, run_id)
    spec = RunSpec(
        name="r", server_urls=(), prompts_dir="-", output_dir="-",
        classes={"c": ClassSpec(concurrency=1, max_new_tokens=1)},
    )  # fmt: skip
    began = time.process_time()
    scan_partition(ledger, partition, spec, lambda _: None)
    spent = time.process_time() - began
    ledger.close()
    return spent


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prompts = folder / "prompts.jsonl"
        write_prompts(prompts, n)
        rounds = [(bare(folder, prompts), ours(folder, prompts)) for _ in range(ROUNDS)]
    bare_s, ours_s = (statistics.median(values) for values in zip(*rounds, strict=True))
    ratio = statistics.median(our_s / its_s for its_s, our_s in rounds)
    print(
        f"{n:,} rows: bare {bare_s:.3f} s, intake {ours_s:.3f} s of processor time;"
        f" ratio {ratio:.2f} (bar: {BAR:g})"
    )
    if ratio > BAR:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
