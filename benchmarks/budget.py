"""How near a token budget ends to its figure, on the server model. No server, no wall clock.

    python -m benchmarks.budget [--seeds 11] [--budget 3000000] [--in-flight 64]

Prints the final use of each seed against the budget and fails when one is further off than 4 %
or their median than 1 %. Claims are made one tick apart, with what was known at the tick, by the
same functions that the workers use; answers in flight run to their end.
"""

import argparse
import statistics
from dataclasses import dataclass
from random import Random

from app.core.budget import MIN_FINISHED, admit, reservation
from app.core.lengths import Lengths
from benchmarks.server_model import ModelServer, Request, lognormal_lengths

TICK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    budget_tokens: int = 3_000_000
    mean_tokens: float = 4000.0
    cap_tokens: int = 16_384
    in_flight: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """`promised_tokens`: the highest used + reserved that any claim led to."""

    tokens: int
    n_answers: int
    promised_tokens: int
    took_s: float

    def off_ratio(self, case: Case) -> float:
        return self.tokens / case.budget_tokens - 1


def spend(seed: int, case: Case) -> Spent:
    """Run one partition until its budget is reached and its last answer has ended."""
    wanted = int(case.budget_tokens / case.mean_tokens * 2) + 500
    todo = iter(
        lognormal_lengths(Random(seed), mean=case.mean_tokens, cap=case.cap_tokens, n=wanted)
    )
    finished: list[int] = []
    server, promised, reached = ModelServer(), 0, False
    while not reached or server.n_in_flight:
        free = case.in_flight - server.n_in_flight
        n, reached, now_promised = _claims(case, finished, server.lengths_so_far(), free)
        promised = max(promised, now_promised)
        for _ in range(n):
            server.submit(Request(500, next(todo), case.cap_tokens))
        finished += [request.length_tokens for request in server.advance(server.now_s + TICK_S)]
    return Spent(
        tokens=sum(finished),
        n_answers=len(finished),
        promised_tokens=promised,
        took_s=server.now_s,
    )


def _claims(
    case: Case, finished: list[int], running: list[int], free: int
) -> tuple[int, bool, int]:
    """Return how many to claim, whether the budget is reached, and used + reserved after it."""
    if free <= 0:
        return 0, False, 0
    cap, used = case.cap_tokens, sum(finished) + sum(running)
    lengths = None
    # far from the budget the worst case fits as well: the model is not needed there
    if used + cap * case.in_flight > case.budget_tokens and len(finished) >= MIN_FINISHED:
        lengths = Lengths.learn(finished=finished, running=running, cap=cap)
    reserved = sum(reservation(lengths, made, cap) for made in running)
    each = reservation(lengths, 0, cap)
    admission = admit(
        budget_tokens=case.budget_tokens,
        used_tokens=used,
        reserved_tokens=reserved,
        each_tokens=each,
        wanted=free,
    )
    promised = used + reserved + admission.n * each if admission.n else 0
    return admission.n, admission.reached, promised


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=11)
    parser.add_argument("--budget", type=int, default=Case().budget_tokens)
    parser.add_argument("--mean", type=float, default=Case().mean_tokens)
    parser.add_argument("--in-flight", type=int, default=Case().in_flight)
    options = parser.parse_args()
    case = Case(budget_tokens=options.budget, mean_tokens=options.mean, in_flight=options.in_flight)
    off = []
    for seed in range(options.seeds):
        spent = spend(seed, case)
        off.append(spent.off_ratio(case))
        print(
            f"seed {seed:2}: {spent.tokens:>10,} tokens, {off[-1]:+.2%},"
            f" {spent.n_answers} answers, promised at most {spent.promised_tokens:,}",
            flush=True,
        )
    median, worst = statistics.median(off), max(off, key=abs)
    print(f"median {median:+.2%}, worst {worst:+.2%} (bars: 1 %, 4 %)")
    if abs(median) > 0.01 or abs(worst) > 0.04:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
