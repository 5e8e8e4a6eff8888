"""How near a whole real run ends to its token budget: processes, ledger, simulator, no model.

    python -m benchmarks.budget_run [--budget 3000000]

One partition at sixty times the speed of one GPU, 64 in flight, lognormal answers of mean 4K cut
at 16,384. The last answers run to their end, so the end lies a little beside the budget. Bar: the
kept tokens are within 5 % of it, and nothing was wasted. About a minute and a half. The spread
over many seeds is shown by `benchmarks.budget`, on a model of the server.
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.process.run_process import RunProcess, SimulatorProcess
from tests.stage import random_texts

PARTITION = "B2_p"
MEAN_TOKENS, CAP_TOKENS, IN_FLIGHT = 4_000, 16_384, 64
BUDGET_TOKENS = 3_000_000
BAR = 0.05
SIMULATOR = ("--time-factor", "60", "--incremental", "--no-log-requests", "--no-count-rows",
             "--mean-tokens", str(MEAN_TOKENS), "--cap-tokens", str(CAP_TOKENS))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    budget_tokens: int
    kept_tokens: int
    wasted_tokens: int
    n_kept: int
    n_left: int

    @property
    def off_ratio(self) -> float:
        return self.kept_tokens / self.budget_tokens - 1


def spend(folder: Path, budget_tokens: int) -> Spent:
    """Run one partition, with twice the prompts that the budget is good for, to its end."""
    simulator = SimulatorProcess(SIMULATOR)
    simulator.start()
    run = RunProcess(
        folder,
        simulator.url,
        concurrency=IN_FLIGHT,
        max_new_tokens=CAP_TOKENS,
        spec_lines=f"[partition.{PARTITION}]\ntoken_budget = {budget_tokens}",
    )
    run.write_prompts(PARTITION, random_texts(2 * budget_tokens // MEAN_TOKENS, seed=11))
    try:
        run.start()
        code = run.wait(within_s=220)
        if code:
            raise AssertionError(f"the run ended with code {code}: {run.log_tail()}")
        (partition,) = run.partitions()
    finally:
        run.close()
        simulator.kill()
    return Spent(
        budget_tokens=budget_tokens,
        kept_tokens=partition.tokens.kept,
        wasted_tokens=partition.tokens.wasted,
        n_kept=partition.counts.kept,
        n_left=partition.counts.pending,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=BUDGET_TOKENS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        spent = spend(Path(name), options.budget)
    print(
        f"{spent.kept_tokens:,} of {spent.budget_tokens:,} tokens: {spent.off_ratio:+.2%}"
        f" (bar: {BAR:.0%}); {spent.n_kept} answers, {spent.n_left} prompts left,"
        f" {spent.wasted_tokens:,} tokens wasted"
    )
    if abs(spent.off_ratio) > BAR or spent.wasted_tokens:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
