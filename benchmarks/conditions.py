"""How soon a condition is where people look, after its threshold was crossed on the server.

    python -m benchmarks.conditions

Real services with real workers against the simulator, in three scenes: outcomes and orders, a
server that becomes slow, a server that stalls and goes away. When a threshold was crossed is told
by the simulator's own log and counts, by the moment of an order, or by the moment of a fault; when
it was seen, by asking the API, `/metrics` and the page again and again, and by a webhook's receiver
for the message. Printed is how much later that was, for each begin and each end. Bar: two looks of
the recorder (2 s) and the poll of this measurement, and not before the threshold. The server's own
counters are asked for twice a second. About three minutes.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from app.core.conditions import ConditionKind
from app.machinery import RECORD_S
from app.simulator.counters import RequestEntry
from benchmarks.conditions_watch import PLACES, Sample, Scene, looking, scene
from tests.process.case_run import CaseRun
from tests.process.run_process import wait_for
from tests.process.serving import run_of

# what the simulator's clock and ours, and windows of another grain, may differ by
EARLY_S = 1.0
STALL_S, AWAY_S, SLOW_S, SLOW_RATIO, MARGIN = 3.0, 5.0, 15.0, 0.5, 1.2
N_BAD, N_GOOD = 50, 80


BAD = {
    "e_empty": (ConditionKind.MANY_EMPTY, "empty", 20),
    "t_cut": (ConditionKind.MANY_TRUNCATED, "truncated", 30),
    "f_failing": (ConditionKind.FAILING, "failing", 20),
}
DRAINED, SPENT = "d_drained", "u_spent"


def outcomes(folder: Path) -> Scene:
    """Bad answers and then good ones, a drain, and a budget that is raised."""

    def prepare(run: CaseRun) -> None:
        run.concurrency, run.max_new_tokens = 2, 100
        lines = [f"{word}_window = {window}" for _, word, window in BAD.values()]
        shares = ["empty_share_pause = 0.5", "truncated_share = 0.5", "failing_share = 0.5"]
        run.run_lines = "\n".join([*lines, *shares, "auto_pause = false", "max_attempts = 1"])
        names = [*BAD, DRAINED, SPENT]
        parts = [f'[partition.{name}]\nclass = "short"\nconcurrency = 2' for name in names]
        run.spec_lines = "\n".join([*parts, "token_budget = 2000"])
        for name in BAD:
            good = [f"{name[0]}{n}" for n in range(N_BAD, N_BAD + N_GOOD)]
            run.write_rows([*(f"{name[0]}{n} @@{name}" for n in range(N_BAD)), *good], name)
        run.write_rows([f"d{n} @@drained" for n in range(100)], DRAINED)
        run.write_rows([f"u{n} @@spent" for n in range(400)], SPENT)

    with scene(folder, prepare) as made:
        empty = {"gen": {"text": "", "output_ids": [2], "meta_info": {"completion_tokens": 1}}}
        made.simulator.script(
            {
                "@@e_empty": [empty | {"delay": 0.4}],
                "@@t_cut": [{"fr": {"type": "length", "length": 9}, "delay": 0.4}],
                "@@f_failing": [{"json": [400, {"message": "no"}], "delay": 0.4}],
                "@@drained": ["ok delay=6"],
                "@@spent": ["ok with 50 output tokens, delay=0.3"],
                "*": ["ok delay=0.4"],
            }
        )
        with looking(made):
            drained, spent = (
                (str(ConditionKind.DRAINING), DRAINED),
                (
                    str(ConditionKind.BUDGET_REACHED),
                    SPENT,
                ),
            )

            def in_flight() -> int:
                found = {one["name"]: one for one in run_of(made.client)["partitions"]}
                return int(found[DRAINED]["in_flight_requests"])

            wait_for(lambda: in_flight() == 2, "slow ones in flight", 30)
            made.truth[drained] = [time.monotonic()]
            made.client.post("/runs/test/drain", json={"partitions": [DRAINED]})
            made.wait(spent, 1)
            made.truth[spent] = [made.log("u")[-1].ended_at or 0.0, time.monotonic()]
            made.client.post("/runs/test/budget", json={"partition": SPENT, "tokens": 1_000_000})
            for key in (drained, spent, *((str(kind), name) for name, (kind, *_) in BAD.items())):
                made.wait(key, 2)
            made.truth[drained].append(made.log("d")[-1].ended_at or 0.0)
            for name, (kind, _, window) in BAD.items():
                made.truth[str(kind), name] = _crossings(made.log(name[0]), window, kind)
        return made


def _crossings(ended: Sequence[RequestEntry], window: int, kind: ConditionKind) -> list[float]:
    """Return when more than half of the last N were bad for sure, and when at most 40 % are."""
    is_bad = [int(one.row.split()[0][1:]) < N_BAD for one in ended]
    least = window if kind is ConditionKind.MANY_EMPTY else 0
    found: list[float] = []
    for n in range(1, len(ended) + 1):
        n_bad = sum(is_bad[max(0, n - window) : n])
        if (n >= least and n_bad > 0.5 * window) if not found else n_bad <= 0.4 * window:
            found.append(ended[n - 1].ended_at or 0.0)
        if len(found) > 1:
            break
    return found


def slow(folder: Path) -> Scene:
    """A server that takes twenty times as long, and recovers."""

    def prepare(run: CaseRun) -> None:
        run.run_lines = f"slow_ratio = {SLOW_RATIO}\nslow_after_s = {SLOW_S}"
        run.write_rows([f"k{n}" for n in range(5_000)])

    with scene(folder, prepare) as made:
        fast = {"*": ["ok with 50 output tokens, delay=0.2"]}
        made.simulator.script(fast)
        key = (str(ConditionKind.SLOW), "B1_p")
        with looking(made):
            wait_for(lambda: made.simulator.stats.delivered_tokens > 0, "tokens", 30)
            time.sleep(SLOW_S)  # a best that lasts
            made.simulator.script({"*": ["ok with 50 output tokens, delay=4"]})
            made.wait(key, 1)
            made.simulator.script(fast)
            made.wait(key, 2)
        made.truth[key] = _speed_crossings(made.delivered)
        return made


def _speed_crossings(delivered: Sequence[Sample]) -> list[float]:
    """Return when a third of the threshold's mean was below its share for so long, and its end."""
    window_s, best, below_s = SLOW_S / 3, 0.0, None
    found: list[float] = []
    begin = 0
    for at_s, tokens, _ in delivered:
        while delivered[begin + 1][0] <= at_s - window_s:
            begin += 1
        passed_s = at_s - delivered[begin][0]
        if passed_s < window_s:
            continue
        mean = (tokens - delivered[begin][1]) / passed_s
        best = max(best, mean)
        if not found:
            below_s = (below_s or at_s) if mean < SLOW_RATIO * best else None
            if below_s is not None and at_s - below_s >= SLOW_S:
                found.append(at_s)
        elif mean >= SLOW_RATIO * MARGIN * best:
            return [*found, at_s]
    return found


def server(folder: Path) -> Scene:
    """A server that makes nothing any more, makes tokens again, goes away and comes back."""

    def prepare(run: CaseRun) -> None:
        run.concurrency = 4
        run.run_lines = f"stall_after_s = {STALL_S}"
        run.write_rows([f"a{n} @@len=200 @@cap=200" for n in range(3_000)])

    with scene(folder, prepare) as made:
        stalled, away = (
            (str(kind), "") for kind in (ConditionKind.STALLED, ConditionKind.WAITING_FOR_SERVER)
        )
        stats = made.simulator.stats
        with looking(made):
            wait_for(lambda: stats.delivered_tokens > 3_000, "tokens", 60)
            made.simulator.freeze()
            frozen_s = time.monotonic()
            made.wait(stalled, 1)
            thawed_s = time.monotonic()
            made.simulator.unfreeze()
            made.wait(stalled, 2)
            wait_for(lambda n=stats.delivered_tokens: stats.delivered_tokens > n + 1_000, "tokens")  # type: ignore[misc]
            made.simulator.stop()
            gone_s = time.monotonic()
            made.wait(away, 1)
            back_s = time.monotonic()
            made.simulator.start()
            made.wait(away, 2)
        made.truth[stalled] = [
            _last_change(made.delivered, 1, frozen_s, thawed_s) + STALL_S,
            _first_change(made.delivered, 1, thawed_s),
        ]
        made.truth[away] = [gone_s + AWAY_S, _first_change(made.delivered, 2, back_s)]
        return made


def _first_change(rows: Sequence[Sample], column: int, after_s: float) -> float:
    pairs = pairwise(rows)
    return next(b[0] for a, b in pairs if b[0] > after_s and a[column] != b[column])


def _last_change(rows: Sequence[Sample], column: int, near_s: float, before_s: float) -> float:
    """Return the last change before a moment; the fault itself if there was none after it."""
    pairs = pairwise(rows)
    found = [b[0] for a, b in pairs if b[0] < before_s and a[column] != b[column]]
    return found[-1] if found else near_s


def table(made: Scene) -> bool:
    """Print a scene's rows; return whether all is within the bar."""
    is_good = True
    for key, truth in made.truth.items():
        for turn, (word, crossed_s) in enumerate(zip(("begin", "end"), truth, strict=True)):
            bar_s = 2 * RECORD_S + made.poll_s(key, turn)
            marks = [made.marks(place, key) for place in PLACES]
            later = [each[turn] - crossed_s for each in marks]
            is_in_time = all(-EARLY_S <= each <= bar_s for each in later)
            is_good &= is_in_time and all(len(each) == len(truth) for each in marks)
            cells = "".join(f"{each:9.2f}" for each in later)
            print(f"{key[0]:20}{word:6}{cells}{bar_s:7.2f}{'' if is_in_time else '  MISSED'}")
    return is_good


def main() -> int:
    print(f"{'seconds after':20}{'':6}{''.join(f'{place:>9}' for place in PLACES)}     bar")
    with tempfile.TemporaryDirectory() as folder:
        scenes = (outcomes, slow, server)
        good = [table(each(Path(folder) / each.__name__)) for each in scenes]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
