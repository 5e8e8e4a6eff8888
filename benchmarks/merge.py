"""What `longwatch merge` costs beside a bare loop, and that its memory does not grow with the data.

    python -m benchmarks.merge [--tokens N] [--rounds N] [--answer-tokens MEAN] [--more=WORD ...]

The bare loop reads a finished run's answers and prompt ids, joins them and writes id, ids and mask
with orjson; ours is the command as it is typed, with ledger, checks, counts and manifest. Each side
is a process of its own that works alone, at a tenth of the tokens and at all of them. Prints
processor seconds without imports, medians of interleaved rounds, the median of their ratios, and
the peak of resident memory; also what the bare loop costs if it counts tokens as `token_freq.json`
does, which has no bar. Compares once, line by line, that both sides wrote the same ids and masks.
Bars: ratio 2.0 at all of the tokens (at a tenth the start of the command weighs more), + 32 MB.
Some two minutes, 700 MB of temporary files. `--more` hands words on to the command
(`--more=--parquet`).
"""

import argparse
import importlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import orjson

from benchmarks.merge_home import PARTITION, RUN, answers_path, fill, ids_path

BAR = 2.0
BAR_GROWTH_MB = 32
SIDES = ("bare", "counting", "ours")


class Cost(NamedTuple):
    spent_s: float
    peak_mb: float


def bare(folder: Path, out: Path, *, counts: bool) -> None:
    loads, dumps = orjson.loads, orjson.dumps
    frequency: Counter[int] = Counter()
    with (
        answers_path(folder).open("rb", 1 << 18) as lines,
        ids_path(folder).open("rb", 1 << 18) as prompts,
        out.open("wb", 1 << 18) as file,
    ):
        for line in lines:
            said = loads(line)
            prompt, answer = array("I"), said["output_ids"]
            prompt.frombytes(prompts.read(4 * said["prompt_tokens"]))
            record = {
                "id": said["id"],
                "input_ids": [*prompt, *answer],
                "loss_mask": [0] * len(prompt) + [1] * len(answer),
            }
            file.write(dumps(record, option=orjson.OPT_APPEND_NEWLINE))
            if counts:
                frequency.update(answer)


def side(name: str, folder: Path, more: list[str]) -> None:
    """Do one side once; print its processor seconds and peak memory in a last line."""
    command = importlib.import_module("app.cli").main
    importlib.import_module("app.cli.merge")
    began = time.process_time()
    if name != "ours":
        bare(folder, folder / "bare.jsonl", counts=name == "counting")
    else:
        words = ["merge", RUN, "--home", str(folder / "home"), "--out", str(folder / "merged")]
        if code := command([*words, *more]):
            raise SystemExit(code)
    spent_s = time.process_time() - began
    print("\n" + json.dumps([spent_s, peak_mb()]))


def peak_mb() -> float:
    """Return the peak resident memory of this program (the kernel's, begun anew with exec)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:"))


def measured(name: str, folder: Path, more: list[str]) -> Cost:
    shutil.rmtree(folder / "merged", ignore_errors=True)
    words = ["--side", name, "--folder", str(folder), *(f"--more={word}" for word in more)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.merge", *words],
        stdout=subprocess.PIPE, text=True, check=True, timeout=900,
    )  # fmt: skip
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def assert_same(folder: Path) -> int:
    """Compare what both sides have written, return the tokens of it."""
    n_tokens = 0
    files = sorted((folder / "merged" / "data").glob("*.jsonl"))
    ours = (line for path in files for line in path.open("rb"))
    with (folder / "bare.jsonl").open("rb") as theirs:
        for one, other in zip(ours, theirs, strict=True):
            its, bare_ones = orjson.loads(one), orjson.loads(other)
            assert its["id"] == f"{PARTITION}/{bare_ones['id']}", (its["id"], bare_ones["id"])
            for key in ("input_ids", "loss_mask"):
                assert its[key] == bare_ones[key], (its["id"], key)
            n_tokens += len(its["input_ids"])
    return n_tokens


def compare(folder: Path, given: argparse.Namespace, n_tokens: int) -> tuple[float, float]:
    """Measure one size; return the ratio and our peak memory."""
    n = fill(folder, n_tokens, given.answer_tokens)
    rounds: list[dict[str, Cost]] = []
    n_written = 0
    for _ in range(given.rounds):
        rounds.append({name: measured(name, folder, given.more) for name in SIDES})
        n_written = n_written or assert_same(folder)
    bare_s, counting_s, ours_s = (
        statistics.median(one[name].spent_s for one in rounds) for name in SIDES
    )
    ratios = [one["ours"].spent_s / one["bare"].spent_s for one in rounds]
    ratio, peak = statistics.median(ratios), max(one["ours"].peak_mb for one in rounds)
    print(
        f"{n:,} answers, {n_written:,} tokens: bare {bare_s:.2f} s ({counting_s:.2f} s if it counts"
        f" tokens too), merge {ours_s:.2f} s of processor time; ratio {ratio:.2f}"
        f" ({', '.join(f'{one:.2f}' for one in ratios)}; bar: {BAR:g}); peak {peak:.0f} MB"
        f" (bare: {max(one['bare'].peak_mb for one in rounds):.0f})",
        flush=True,
    )
    return ratio, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answer-tokens", type=int, default=3_000)
    parser.add_argument("--more", action="append", default=[])
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        side(given.side, given.folder, given.more)
        return
    results = []
    for n_tokens in (given.tokens // 10, given.tokens):
        with tempfile.TemporaryDirectory() as name:
            results.append(compare(Path(name) / "bench", given, n_tokens))
    growth_mb = results[1][1] - results[0][1]
    print(f"memory of the larger over the smaller: {growth_mb:+.0f} MB (bar: + {BAR_GROWTH_MB})")
    if results[1][0] > BAR or growth_mb > BAR_GROWTH_MB:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
