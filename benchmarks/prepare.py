"""What preparing 1,000,000 rows costs, beside a bare loop that parses and writes the same file.

    python -m benchmarks.prepare [--rows ROWS] [--rounds ROUNDS]

Two shapes: single turns with the columns of OpenCodeInstruct, about 5 kB a row, and conversations
of four to eight turns as UltraChat's, about 6 kB a row. Each side is a process of its own that
works alone; ours is what `longwatch prepare` starts for one source. Prints processor seconds,
medians of interleaved rounds, the median of their ratios, and the peak of resident memory. Bars:
ratio 2.5, 300 MB. Some ten minutes, 13 GB of temporary files.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from app.sources.finding import SourceFile
from app.sources.partitions import whole
from app.sources.preparing import Job
from app.sources.spec import SourceSpec
from app.sources.writing import draft_folder

BAR = 2.5
BAR_MB = 300
WORDS = "the quick brown fox jumps over the lazy dog and says something of some length "
RECIPES = {"single": "opencodeinstruct", "turns": "ultrachat"}


def single_row(number: int) -> dict[str, object]:
    judged = ", ".join(
        f'"{what}": {{"score": 5, "justification": "{WORDS * 4}"}}'
        for what in ("requirement_conformance", "logical_correctness", "edge_case_consideration")
    )
    return {
        "id": f"{number:032x}",
        "input": f"Task {number}: {WORDS * (6 + number % 12)}",
        "output": f"Answer {number}: {WORDS * (8 + number % 15)}",
        "domain": "generic",
        "generation_algorithm": "self-instruct",
        "llm_judgement": f"{{{judged}}}",
        "unit_tests": str([f"assert answer({each}) == {number + each}" for each in range(30)]),
        "tests_execution_status": str(["pass"] * 30),
        "average_test_score": "1",
    }


def turns_row(number: int) -> dict[str, object]:
    messages = [
        {
            "role": ("user", "assistant")[turn % 2],
            "content": f"{number} {turn}: {WORDS * (3, 22)[turn % 2]}",
        }
        for turn in range(4 + 2 * (number % 3))
    ]
    return {"prompt": messages[0]["content"], "prompt_id": f"{number:064x}", "messages": messages}


def write_rows(path: Path, shape: str, n: int) -> None:
    make = single_row if shape == "single" else turns_row
    with path.open("wb") as file:
        for number in range(n):
            file.write(orjson.dumps(make(number)) + b"\n")


def bare(path: Path, folder: Path) -> None:
    loads, dumps = orjson.loads, orjson.dumps
    with path.open("rb", 1 << 18) as lines, (folder / "bare.jsonl").open("wb", 1 << 18) as file:
        for line in lines:
            file.write(dumps(loads(line)) + b"\n")
    (folder / "bare.jsonl").unlink()


def ours(path: Path, folder: Path, shape: str) -> None:
    job = Job(
        source=SourceSpec(name="part", paths=(str(path),), recipe=RECIPES[shape]),
        files=(SourceFile(path, path.name),),
        draft=draft_folder(folder / "part", 1),
    )
    outcome = whole(job, True, lambda _rows, _bytes: None)
    report = outcome.report or {}
    assert report["rows_in"] == report["kept"], report


def side(name: str, path: Path, folder: Path, shape: str) -> None:
    """Do one side once; print its processor seconds and peak memory."""
    began = time.process_time()
    if name == "bare":
        bare(path, folder)
    else:
        ours(path, folder, shape)
    spent_s = time.process_time() - began
    print(json.dumps([spent_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000]))


def measured(name: str, path: Path, folder: Path, shape: str) -> tuple[float, float]:
    words = ["--side", name, "--file", str(path), "--folder", str(folder), "--shape", shape]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.prepare", *words],
        capture_output=True, text=True, check=True, timeout=900,
    )  # fmt: skip
    spent_s, peak_mb = json.loads(done.stdout)
    return spent_s, peak_mb


def compare(folder: Path, shape: str, n: int, n_rounds: int) -> bool:
    path = folder / "rows.jsonl"
    write_rows(path, shape, n)
    rounds = [
        (measured("bare", path, folder, shape), measured("ours", path, folder, shape))
        for _ in range(n_rounds)
    ]
    bare_s, ours_s = (statistics.median(one[each][0] for one in rounds) for each in (0, 1))
    ratios = [its[0] / theirs[0] for theirs, its in rounds]
    peak_mb = max(its[1] for _, its in rounds)
    ratio = statistics.median(ratios)
    print(
        f"{shape}: {n:,} rows, {path.stat().st_size / 1e6:,.0f} MB: bare {bare_s:.2f} s, prepare"
        f" {ours_s:.2f} s of processor time; ratio {ratio:.2f}"
        f" ({', '.join(f'{one:.2f}' for one in ratios)}; bar: {BAR:g});"
        f" peak {peak_mb:.0f} MB (bar: {BAR_MB})",
        flush=True,
    )
    return ratio <= BAR and peak_mb < BAR_MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--shape", choices=RECIPES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        side(given.side, given.file, given.folder, given.shape)
        return
    with tempfile.TemporaryDirectory() as name:
        results = [compare(Path(name), shape, given.rows, given.rounds) for shape in RECIPES]
    if not all(results):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
