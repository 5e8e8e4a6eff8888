"""How soon the server feels a control: concurrency lowered, raised, a partition paused.

    python -m benchmarks.controls [--rounds 3]

A real run (service and worker processes) against a simulator process at five times the speed of
one GPU; orders go by the API, time runs from before the order. Seconds, for people wait for them:
- 150 -> 20: the last new request that the server sees (what runs goes on to its end);
- 20 -> 300: until 300 are in flight on the server (bar: 2 s);
- pause of 64 running answers of 8K tokens: until the server runs nothing (bar: 2 s).
Printed are medians; the bars are for them. About three minutes.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.cli.remote import Api, living_api
from app.settings import Settings
from tests.process.run_process import RunProcess, SimulatorProcess, wait_for
from tests.stage import random_texts

PARTITION = "B1_p"
SIMULATOR = ("--incremental", "--no-log-requests", "--no-count-rows", "--max-running", "512",
             "--kv-tokens", "4000000", "--time-factor", "5")  # fmt: skip
HIGH, LOW, HIGHER = 150, 20, 300
PAUSED = 64
BAR_S = 2.0
QUIET_S = 4.0
LOOK_S = 0.01


@contextmanager
def stage(folder: Path, texts: list[str], concurrency: int) -> Iterator[tuple[Api, "Counters"]]:
    """Run these prompts; yield the API of the run's service and the server's counters."""
    folder.mkdir()
    simulator = SimulatorProcess(SIMULATOR)
    simulator.start()
    run = RunProcess(folder, simulator.url, concurrency=concurrency, max_new_tokens=8_192)
    run.write_prompts(PARTITION, texts)
    try:
        run.start()
        wait_for(lambda: simulator.counters()["in_flight"] == concurrency, "the first requests")
        with living_api(Settings(home=run.home)) as api:
            if api is None:
                raise SystemExit(f"the run has ended: {run.log_tail()}")
            yield api, simulator.counters
    finally:
        run.close()
        simulator.kill()


Counters = Callable[[], Mapping[str, int]]


def seconds_until(holds: Callable[[], bool], began_s: float, what: str) -> float:
    while not holds():
        if time.perf_counter() - began_s > 60:
            raise SystemExit(f"waited 60 s for {what}")
        time.sleep(LOOK_S)
    return time.perf_counter() - began_s


def last_new_request_s(counters: Counters, began_s: float) -> float:
    """Return when the last new request came, once none has come for a while."""
    seen, last_s = counters()["generate_calls"], 0.0
    while (passed_s := time.perf_counter() - began_s) - last_s < QUIET_S:
        now = counters()["generate_calls"]
        if now != seen:
            seen, last_s = now, passed_s
        time.sleep(LOOK_S)
    return last_s


def concurrency(folder: Path) -> tuple[float, float]:
    """Measure 150 -> 20 and, when 20 are left, 20 -> 300."""
    texts = random_texts(20_000, seed=1, mark="@@mean=1000 @@cap=4000")
    with stage(folder, texts, HIGH) as (api, counters):
        # Answers end all the time by now, so that a worker that did not obey would be seen.
        calls = counters()["generate_calls"]
        wait_for(lambda: counters()["generate_calls"] >= calls + 30, "answers that end")
        began = time.perf_counter()
        _order(api, "concurrency", requests=LOW)
        down_s = last_new_request_s(counters, began)
        wait_for(lambda: counters()["in_flight"] <= LOW, f"{LOW} in flight")
        began = time.perf_counter()
        _order(api, "concurrency", requests=HIGHER)
        up_s = seconds_until(lambda: counters()["in_flight"] >= HIGHER, began, "300 in flight")
    return down_s, up_s


def pause(folder: Path, rounds: int) -> list[float]:
    """Measure pauses of the same partition, resumed in between."""
    found = []
    texts = random_texts(1_000, seed=2, mark="@@len=8000 @@cap=8000")
    with stage(folder, texts, PAUSED) as (api, counters):
        for _ in range(rounds):
            tokens = counters()["delivered_tokens"]
            wait_for(lambda n=tokens: counters()["delivered_tokens"] > n + 20_000, "tokens")  # type: ignore[misc]
            began = time.perf_counter()
            api.post("/runs/test/pause", {"partitions": [PARTITION]})
            found.append(seconds_until(lambda: not counters()["in_flight"], began, "silence"))
            api.post("/runs/test/resume", {"partitions": [PARTITION]})
            wait_for(lambda: counters()["in_flight"] == PAUSED, "the answers to go on")
    return found


def _order(api: Api, verb: str, **values: object) -> None:
    api.post(f"/runs/test/{verb}", {"partition": PARTITION, **values})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        pairs = [concurrency(Path(name) / f"{n}") for n in range(options.rounds)]
        pauses = pause(Path(name) / "pause", options.rounds)
    down, up = ([pair[n] for pair in pairs] for n in (0, 1))
    _tell(f"{HIGH} -> {LOW}: last new request after", down, None)
    missed = [
        _tell(f"{LOW} -> {HIGHER}: all in flight after", up, BAR_S),
        _tell(f"pause of {PAUSED} answers of 8K tokens: silence after", pauses, BAR_S),
    ]
    if any(missed):
        raise SystemExit(1)


def _tell(what: str, seconds: list[float], bar_s: float | None) -> bool:
    """Print the median; return whether it misses the bar."""
    median = statistics.median(seconds)
    shown = ", ".join(f"{value:.2f}" for value in seconds)
    bar = "" if bar_s is None else f" (bar: {bar_s:g} s)"
    print(f"{what} {median:.2f} s{bar}   ({shown})", flush=True)
    return bar_s is not None and median > bar_s


if __name__ == "__main__":
    main()
