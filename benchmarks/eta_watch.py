"""Looks at the story as the service does, and notes what was said of the time left.

Owns the looking only: it feeds a `Speedometer`, builds what the ledger would say, and asks
`foresee`; beside it three plain estimators. No wall clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.core.estimate import Unknown
from app.core.lengths import Lengths
from app.core.showing import too_few
from app.core.spec import ClassSpec, RunSpec
from app.core.states import PartitionState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.core.views import PartitionView
from app.figures.forecasting import Known, foresee, outlook
from app.figures.speedometer import Speedometer
from app.ledger.progress import Pulse
from app.ledger.samples import RECENT_LENGTHS
from benchmarks.story import PROMPT_TOKENS, Part, Work

FRACTIONS = (0.01, 0.02, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90)
LOOK_EVERY_S = 5.0
RUN = RunId(1)
RUN_NAME = "the run"
_BEGIN = datetime(2024, 5, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was said of the time left, at one share of the work; `naive` by plain estimators."""

    of: str
    fraction: float
    at_s: float
    low_s: float
    mid_s: float
    high_s: float
    naive: dict[str, float]
    truth_s: float = 0.0

    @property
    def error(self) -> float:
        return self.mid_s / self.truth_s - 1

    @property
    def is_held(self) -> bool:
        return self.low_s <= self.truth_s <= self.high_s


class Watch:
    """Looks at the work as the service does."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.meter = Speedometer()
        self.spec = RunSpec(
            name="story",
            server_urls=("http://127.0.0.1:1",),
            prompts_dir="p",
            output_dir="o",
            classes={
                name: ClassSpec(concurrency=n, max_new_tokens=1) for name, n in work.limits.items()
            },
            partitions={},
        )
        self._made = [0] * len(work.parts)
        self._recent: list[tuple[float, list[int], list[int]]] = []

    def look(self, at_s: float) -> None:
        server = self.work.server
        flying = max(1, server.n_in_flight)
        self.meter.see_servers(RUN, len(server.running) / flying, 0)
        self._made = [part.made_tokens(server) for part in self.work.parts]
        beats = [
            Pulse(
                run_id=RUN,
                partition_id=PartitionId(i),
                is_working=True,
                own_concurrency=None,
                received_tokens=made,
                n_in_flight=len(part.flying),
            )
            for i, (part, made) in enumerate(zip(self.work.parts, self._made, strict=True))
        ]
        self.meter.feed(beats, at_s)
        ended = [len(part.finished) for part in self.work.parts]
        self._recent.append((at_s, list(self._made), ended))
        if len(self._recent) > 1 + 1800 / LOOK_EVERY_S:
            self._recent.pop(0)

    def shares(self) -> list[float]:
        """Return the share of the work done, of each partition and of the run."""
        wholes = [part.total_tokens for part in self.work.parts]
        each = [made / whole for made, whole in zip(self._made, wholes, strict=True)]
        return [*each, sum(self._made) / sum(wholes)]

    def is_shown(self, i: int) -> bool:
        """Return whether enough answers have ended; of the run: of each of its partitions."""
        parts = self.work.parts
        asked = parts if i == len(parts) else [parts[i]]
        return all(too_few(len(each.finished), len(each.lengths)) is None for each in asked)

    def say(self, at_s: float, fraction: float, whose: Sequence[int]) -> Iterator[Said]:
        parts = self.work.parts
        views = [
            outlook(self._view(i, part), self._known(part))
            for i, part in enumerate(parts)
            if not part.is_over
        ]
        seen = self.meter.seen(RUN, at_s)
        found = foresee(views, self.spec, seen, seed=int(at_s / 300))
        assert not isinstance(found, Unknown), found.why
        for i in whose:
            name = RUN_NAME if i == len(parts) else parts[i].plan.name
            end = found.run if i == len(parts) else found.ends[name]
            yield Said(
                of=name,
                fraction=fraction,
                at_s=at_s,
                low_s=end.low_s,
                mid_s=end.mid_s,
                high_s=end.high_s,
                naive=self._naive(i, at_s),
            )

    def _known(self, part: Part) -> Known:
        newest = sorted(part.finished)[-RECENT_LENGTHS:]
        running = tuple(self.work.server.made(ask) for ask in part.flying.values())
        return Known(
            lengths=Lengths.learn(
                finished=[length for _, length in newest],
                running=running,
                cap=part.plan.cap_tokens,
            ),
            started_tokens=running,
        )

    def _view(self, i: int, part: Part) -> PartitionView:
        n = len(part.finished)
        return PartitionView(
            id=PartitionId(i),
            run_id=RUN,
            name=part.plan.name,
            class_name=part.plan.class_name,
            state=PartitionState.ACTIVE,
            state_since=_BEGIN,
            reason="",
            prompts_path="",
            intake="tokenized",
            own_concurrency=None,
            token_budget=None,
            goal_samples=None,
            max_new_tokens=part.plan.cap_tokens,
            counts=Counts(pending=part.n_pending, running=len(part.flying), ok=n),
            tokens=Tokens(received=self._made[i], kept=part.finished_tokens),
            reserved_tokens=0,
            n_tokenized=len(part.lengths),
            token_file_tokens=PROMPT_TOKENS * len(part.lengths),
            budget_reached=False,
            sealed_at=None,
        )

    def _naive(self, i: int, at_s: float) -> dict[str, float]:
        """Return what three plain estimators say; of the run: the sums over its partitions."""
        n = len(self.work.parts)
        whose = range(n) if i == n else (i,)
        parts = [self.work.parts[k] for k in whose]
        begin_s, made, ended = self._recent[0]
        passed_s = max(1e-9, at_s - begin_s)
        rate = sum(self._made[k] - made[k] for k in whose) / passed_s
        n_ended = sum(len(part.finished) for part in parts)
        n_recent = n_ended - sum(ended[k] for k in whose)
        n_left = sum(len(part.lengths) for part in parts) - n_ended
        tokens_left = sum(
            (len(part.lengths) - len(part.finished))
            * (part.finished_tokens / max(1, len(part.finished)))
            for part in parts
        )
        return {
            "mean of finished": tokens_left / max(1e-9, rate),
            "average since start": n_left * at_s / max(1, n_ended),
            "sample rate": n_left * passed_s / max(1, n_recent),
        }


def follow(work: Work) -> list[Said]:
    """Run to the end; return what was said on the way, with the truth."""
    watch = Watch(work)
    said: list[Said] = []
    todo = [list(FRACTIONS) for _ in range(len(work.parts) + 1)]
    next_s = 0.0
    for now_s in work.ticks():
        if now_s < next_s:
            continue
        next_s += LOOK_EVERY_S
        watch.look(now_s)
        due: dict[float, list[int]] = {}
        for i, share in enumerate(watch.shares()):
            while todo[i] and share >= todo[i][0]:
                due.setdefault(todo[i].pop(0), []).append(i)
        for fraction, whose in due.items():
            said += watch.say(now_s, fraction, [i for i in whose if watch.is_shown(i)])
    ends = {part.plan.name: part.ended_at_s or 0.0 for part in work.parts}
    ends[RUN_NAME] = max(ends.values())
    return [
        replace(one, truth_s=ends[one.of] - one.at_s) for one in said if ends[one.of] > one.at_s
    ]
