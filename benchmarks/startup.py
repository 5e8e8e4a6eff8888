"""Start to first request, with a million finished samples in the ledger against a thousand.

    python -m benchmarks.startup [--finished 1000000] [--rounds 5] [--prompt-bytes 500]

A run with so many finished samples and 50 pending ones is resumed by `python -m app run`, a real
process with a real worker; measured is the time from its spawn to the first `/generate` that the
simulator sees. The start reads what it must of prompts, files and ledger. Both homes are prepared
once; rounds interleave. Bar: the median ratio is at most 2. About a minute and a half and 2 GB.
"""

import argparse
import asyncio
import signal
import statistics
import tempfile
import time
from pathlib import Path

from app.clock import SystemClock
from app.files.spec_files import load_spec
from app.ledger import runs
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.preflight import preflight
from app.settings import Settings
from app.simulator.answers import LengthModel
from app.simulator.server import SimulatorThread
from app.submission import submit
from benchmarks import homes
from tests.process.run_process import RunProcess

PENDING = 50
SMALL = 1_000
BAR = 2.0
WITHIN_S = 120.0
PARTITION = "B1_p"


def prepare(folder: Path, url: str, finished: int, prompt_bytes: int) -> RunProcess:
    """Submit a run as the program does, then let all but 50 of its samples be finished."""
    folder.mkdir()
    run = RunProcess(folder, url, concurrency=PENDING, max_new_tokens=8_000)
    prompts = folder / "prompts" / f"{PARTITION}.jsonl"
    homes.write_prompts(prompts, finished + PENDING, prompt_bytes)
    run.home.mkdir()
    upgrade(run.home / "ledger.db")
    ledger = Ledger(run.home / "ledger.db")
    try:
        asyncio.run(_submit(run, ledger))
        run_id = runs.list_runs(ledger)[0].id
        (partition,) = runs.partitions_of(ledger, run_id)
        homes.finish_first(ledger, partition.id, finished)
        homes.tokenize_all(ledger, run.home, run_id, partition.id, homes.PROMPT_BYTES)
        homes.check(ledger, partition.id)
    finally:
        ledger.close()
    return run


async def _submit(run: RunProcess, ledger: Ledger) -> None:
    spec, clock = load_spec(run.spec), SystemClock()
    report = await preflight(spec, Settings(home=run.home), clock, lambda _: None)
    if report.errors:
        raise SystemExit("\n".join(report.errors))
    await submit(
        ledger,
        run.home.resolve(),
        spec,
        report,
        accept_changes=False,
        who="benchmark",
        clock=clock,
        say=lambda _: None,
    )


def first_request_s(run: RunProcess, simulator: SimulatorThread) -> float:
    """Start the run, wait for its first request, stop it again as Ctrl-C does."""
    before = simulator.stats.generate_calls
    began = time.perf_counter()
    run.start()
    while simulator.stats.generate_calls == before:
        if time.perf_counter() - began > WITHIN_S:
            run.close()
            raise SystemExit(f"no request within {WITHIN_S:g} s: {run.log_tail()}")
        time.sleep(0.002)
    took_s = time.perf_counter() - began
    run.signal(signal.SIGTERM)
    run.wait()
    return took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt-bytes", type=int, default=500)
    options = parser.parse_args()
    # Answers that do not end: nothing is finished by measuring.
    answers = LengthModel(fixed_tokens=8_000, cap_tokens=8_000)
    with (
        tempfile.TemporaryDirectory() as name,
        SimulatorThread(lengths=answers) as simulator,
    ):
        cases = {
            n: prepare(Path(name) / str(n), simulator.url, n, options.prompt_bytes)
            for n in (SMALL, options.finished)
        }
        for run in cases.values():
            first_request_s(run, simulator)  # once for nothing: compiled files, page cache
        took = {n: [] for n in cases}  # type: dict[int, list[float]]
        for _ in range(options.rounds):
            for n, run in cases.items():
                took[n].append(first_request_s(run, simulator))
    for n, values in took.items():
        shown = ", ".join(f"{value:.2f}" for value in values)
        print(f"{n:>9,} finished: first request after {statistics.median(values):.2f} s ({shown})")
    pairs = zip(took[options.finished], took[SMALL], strict=True)
    ratio = statistics.median(large / small for large, small in pairs)
    print(f"ratio {ratio:.2f} (bar: {BAR:g})")
    if ratio > BAR:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
