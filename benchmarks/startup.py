"""Start to first request, with a million finished samples in the ledger against a thousand.

    python -m benchmarks.startup [--finished 1000000] [--rounds 5] [--prompt-bytes 2000]

A run with so many finished samples and 50 pending ones is started again by `python -m app run`, a
real process with a real worker; measured is the time from its spawn to the first `/generate` that
the simulator sees. A run that its service left goes on at once, while the submission is compared;
one that was stopped goes on only behind the fingerprint, of its prompt file too. Homes are
prepared once, rounds interleave. Bar: both median ratios are at most 2. About a minute, 3 GB.
"""

import argparse
import asyncio
import signal
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from app.clock import SystemClock
from app.files.spec_files import load_spec
from app.ledger import runs
from app.ledger.activity import Deed
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
LEFT, STOPPED = "goes on by itself", "was stopped"


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


def stop(run: RunProcess) -> None:
    """Bring the run, which no service serves, to where `longwatch stop` brings it."""
    with run.ledger() as ledger:
        run_id = runs.list_runs(ledger)[0].id
        for event in ("stop", "workers gone"):
            deed = Deed(who="benchmark", event=event, run_id=run_id)
            runs.move_run(ledger, run_id, event, deed, SystemClock().now())


def first_request_s(run: RunProcess, simulator: SimulatorThread) -> float:
    """Start the run, wait for its first request, end it again as Ctrl-C does."""
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
    parser.add_argument("--prompt-bytes", type=int, default=2_000)
    options = parser.parse_args()
    # Answers that do not end: nothing is finished by measuring.
    answers = LengthModel(fixed_tokens=8_000, cap_tokens=8_000)
    with (
        tempfile.TemporaryDirectory() as name,
        SimulatorThread(lengths=answers) as simulator,
    ):
        homes_of = {
            n: prepare(Path(name) / str(n), simulator.url, n, options.prompt_bytes)
            for n in (SMALL, options.finished)
        }
        for run in homes_of.values():
            first_request_s(run, simulator)  # once for nothing: compiled files, page cache
        took: dict[tuple[str, int], list[float]] = defaultdict(list)
        for _ in range(options.rounds):
            for n, run in homes_of.items():
                took[LEFT, n].append(first_request_s(run, simulator))
                stop(run)
                took[STOPPED, n].append(first_request_s(run, simulator))
    kept = [_tell(how, took[how, SMALL], took[how, options.finished]) for how in (LEFT, STOPPED)]
    if not all(kept):
        raise SystemExit(1)


def _tell(how: str, small: list[float], large: list[float]) -> bool:
    """Print the figures of one way to start; return whether they keep the bar."""
    ratios = [its / other for its, other in zip(large, small, strict=True)]
    ratio, shown = statistics.median(ratios), ", ".join(f"{each:.2f}" for each in ratios)
    print(
        f"{how}: first request after {statistics.median(large):.2f} s against"
        f" {statistics.median(small):.2f} s; ratio {ratio:.2f} (bar: {BAR:g})   ({shown})"
    )
    return ratio <= BAR


if __name__ == "__main__":
    main()
