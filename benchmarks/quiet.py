"""Whether a quiet run stays quiet: no condition in eight hours of the story's workload.

    python -m benchmarks.quiet [--hours 8] [--seeds 2]

Eight partitions on the model of the server (no clock, no processes), looked at once a second of
model time by the very functions that the service calls, over values in place of the ledger's rows.
A healthy run is no clean one: some answers fail, are cut, empty or repeat themselves, partitions
end and leave their share to others. Bar: not one condition, in any seed. Then the same with a
server that becomes three times slower half-way: every partition that works must be said to be slow
within its threshold and a quarter of an hour (the speed of a partition of few long answers
scatters: each good minute begins the threshold anew), and not before. About two minutes a seed.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import NamedTuple

from app.core.conditions import ConditionKind
from app.core.spec import ClassSpec, PartitionSpec, RunSpec
from app.core.states import PartitionState, RunState
from app.core.supervision import wanted_workers
from app.core.types import Counts, PartitionId, RunId, Tokens, WorkerId
from app.core.views import PartitionView, RunView, WorkerView
from app.figures.knowing import conditions_of
from app.figures.looking import Beside, Look
from app.figures.speedometer import Speedometer
from app.ledger.db import Ledger
from app.ledger.migrate import upgrade
from app.ledger.progress import Pulse
from app.settings import Settings
from benchmarks.server_model import ModelServer, Request, lognormal_lengths

MEANS = {
    **dict.fromkeys(("B1_a", "B3_c", "B6_f", "B7_g"), 1_500),
    "B2_b": 3_793,
    "B4_d": 6_000,
    "B5_e": 6_000,
    "B8_h": 8_000,
}
CAPS = {"short": 10_240, "long": 16_384}
CONCURRENCY = {"short": 150, "long": 32}
TOKENS_EACH = 4_000_000
PROMPT_TOKENS, STREAM_INTERVAL = 300, 64
OUTCOMES = (("failed", 0.01), ("empty", 0.005), ("suspect", 0.02))
START = datetime(2025, 1, 1, tzinfo=UTC)
SLOWER, SLOW_AFTER_S, SLACK_S = 3.0, 600.0, 900.0


def class_of(name: str) -> str:
    return "short" if name[:2] in ("B1", "B3", "B6", "B7") else "long"


SPEC = RunSpec(
    name="story",
    server_urls=("http://model",),
    prompts_dir="p",
    output_dir="o",
    classes={
        name: ClassSpec(concurrency=CONCURRENCY[name], max_new_tokens=cap)
        for name, cap in CAPS.items()
    },
    partitions={name: PartitionSpec(class_name=class_of(name)) for name in MEANS},
)


@dataclass(eq=False)
class Part:
    """One partition: what is still to be sent, what runs, how what ended ended."""

    id: PartitionId
    name: str
    random: Random
    waiting: list[int] = field(default_factory=list)
    running: dict[int, Request] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    ended_tokens: int = 0

    def __post_init__(self) -> None:
        mean, cap = MEANS[self.name], CAPS[class_of(self.name)]
        n = TOKENS_EACH // mean
        self.waiting = lognormal_lengths(self.random, mean=mean, cap=cap, n=n)

    def end(self, request: Request) -> None:
        del self.running[id(request)]
        self.ended_tokens += request.length_tokens
        drawn = self.random.random()
        for outcome, share in OUTCOMES:
            if drawn < share:
                self.ended[outcome] += 1
                return
            drawn -= share
        is_cut = request.length_tokens == request.cap_tokens
        self.ended["truncated" if is_cut else "ok"] += 1

    def view(self, server: ModelServer) -> PartitionView:
        made = [server.made(one) // STREAM_INTERVAL for one in self.running.values()]
        held = sum(made) * STREAM_INTERVAL
        tokens = Tokens(received=self.ended_tokens + held, kept=self.ended_tokens, held=held)
        counts = Counts(pending=len(self.waiting), running=len(self.running), **self.ended)
        return PartitionView(
            id=self.id,
            run_id=RunId(1),
            name=self.name,
            class_name=class_of(self.name),
            state=PartitionState.ACTIVE,
            state_since=START,
            reason="",
            prompts_path="",
            intake="tokenized",
            own_concurrency=None,
            token_budget=None,
            goal_samples=None,
            max_new_tokens=CAPS[class_of(self.name)],
            counts=counts,
            tokens=tokens,
            reserved_tokens=0,
            n_tokenized=counts.total,
            token_file_tokens=0,
            budget_reached=False,
            sealed_at=None,
        )


class Said(NamedTuple):
    at_s: float
    kind: ConditionKind
    partition: str
    sentence: str


class Night:
    """One run on one model, looked at each second."""

    def __init__(self, ledger: Ledger, settings: Settings, seed: int) -> None:
        random = Random(seed)
        self.server = ModelServer()
        self.parts = [
            Part(PartitionId(n), name, Random(random.random())) for n, name in enumerate(MEANS, 1)
        ]
        self._ledger, self._settings = ledger, settings
        self._speedometer = Speedometer()
        self._owner: dict[int, Part] = {}
        self._last_token_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return not any(part.waiting or part.running for part in self.parts)

    def watch(self, hours: float, slower_at_s: float | None = None) -> Iterator[Said]:
        """Give what is said, each condition once at its begin."""
        held: set[tuple[ConditionKind, str]] = set()
        for second in range(1, int(hours * 3_600)):
            if second == slower_at_s:
                self.server.start_s *= SLOWER
                self.server.per_request_s *= SLOWER
            shares = self._send()
            for request in self.server.advance(float(second)):
                self._owner.pop(id(request)).end(request)
            if self.is_over:
                return
            look = self._look(float(second), shares)
            found = conditions_of(self._ledger, look, (), self._speedometer)
            for one in found:
                if one.key not in held:
                    yield Said(float(second), one.kind, one.partition, one.sentence)
            held = {one.key for one in found}

    def _send(self) -> dict[PartitionId, int]:
        views = [part.view(self.server) for part in self.parts]
        wanted = wanted_workers(RunState.RUNNING, SPEC, views)
        for part in self.parts:
            while part.waiting and len(part.running) < wanted[part.id].share:
                cap = CAPS[class_of(part.name)]
                request = Request(PROMPT_TOKENS, part.waiting.pop(), cap)
                part.running[id(request)] = request
                self._owner[id(request)] = part
                self.server.submit(request)
        return {each: order.share for each, order in wanted.items()}

    def _look(self, at_s: float, shares: dict[PartitionId, int]) -> Look:
        now = START + timedelta(seconds=at_s)
        views = [part.view(self.server) for part in self.parts]
        beats = [
            Pulse(
                run_id=RunId(1),
                partition_id=each.id,
                is_working=True,
                own_concurrency=None,
                received_tokens=each.tokens.received,
                n_in_flight=each.counts.running,
            )
            for each in views
        ]
        self._speedometer.feed(beats, at_s)
        return Look(
            run=_RUN,
            spec=SPEC,
            now=now,
            at_s=at_s,
            partitions=views,
            workers=[_worker(each, now, self._settings.lease_s) for each in views],
            shares=shares,
            settings=self._settings,
            beside=Beside(),
            is_served=True,
        )


_RUN = RunView(
    id=RunId(1),
    name="story",
    state=RunState.RUNNING,
    state_since=START,
    reason="",
    spec_json="{}",
    output_dir=tempfile.gettempdir(),
    token_budget=None,
    fingerprint_json="{}",
    gen_id="",
    created_at=START,
)


def _worker(view: PartitionView, now: datetime, lease_s: float) -> WorkerView:
    return WorkerView(
        id=WorkerId(view.id),
        partition_id=view.id,
        pid=1,
        state="working",
        desired="work",
        lease_expires_at=now + timedelta(seconds=lease_s),
        started_at=START,
        exit_reason="",
        notice="",
        in_flight=view.counts.running,
        received_tokens=view.tokens.received,
        last_token_at=now,
        waiting_since=None,
    )


def show(said: list[Said]) -> None:
    for one in said[:20]:
        print(f"  {one.at_s / 3600:5.2f} h  {one.kind} {one.partition}: {one.sentence}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    is_good = True
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "ledger.db"
        upgrade(path)
        ledger = Ledger(path)
        settings = Settings(home=Path(name), disk_low_bytes=0)
        for seed in range(options.seeds):
            night = Night(ledger, settings, seed)
            said = list(night.watch(options.hours))
            ended = sum((part.ended for part in night.parts), Counter[str]())
            hours = night.server.now_s / 3600
            print(
                f"seed {seed}: {len(said)} conditions (bar: 0) in {hours:.1f} h,"
                f" {night.server.made_tokens:,} tokens, {night.server.n_retracted:,} retractions,"
                f" {dict(ended)}"
            )
            show(said)
            is_good &= not said
        is_good &= slow_is_said(ledger, settings, options.hours)
        ledger.close()
    if not is_good:
        raise SystemExit(1)


def slow_is_said(ledger: Ledger, settings: Settings, hours: float) -> bool:
    """Make the server slower at a quarter of the night; return whether all working parts say so."""
    slower_at_s = int(hours * 900)
    night = Night(ledger, settings, seed=99)
    until = (slower_at_s + SLOW_AFTER_S + SLACK_S) / 3600
    said = list(night.watch(until, slower_at_s))
    slow = {one.partition: one.at_s - slower_at_s for one in said if one.kind == ConditionKind.SLOW}
    after = ", ".join(f"{name} {s:.0f} s" for name, s in sorted(slow.items()))
    print(f"three times slower: said of {len(slow)} of {len(MEANS)} partitions after {after}")
    show([one for one in said if one.kind is not ConditionKind.SLOW])
    return len(slow) == len(MEANS) == len(said) and min(slow.values()) > 0


if __name__ == "__main__":
    main()
