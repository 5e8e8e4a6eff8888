"""The time left that is shown, of one run: remembered between looks, gated, smoothed.

Owns when a forecast is made anew (every ten seconds, sooner for what is short, at once when a
control or the set of working partitions changes) and counts down in between. What is shown and
what is withheld is `core/showing`'s; the forecast itself `figures/forecasting`'s.
Invariants: the run is shown only when all that may end last have answers of their own, and never
less than a partition shown beside it; nothing is at 0 while samples of it run or may be claimed;
what people change and what ends or opens again is not smoothed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.core.estimate import Estimate, Unknown
from app.core.forecast import Forecast
from app.core.pace import Seen
from app.core.showing import Shown, at_least, not_steady, smoothed
from app.core.spec import RunSpec
from app.core.states import PartitionState
from app.core.views import PartitionView
from app.figures.enough import few, is_open, no_lengths
from app.figures.forecasting import Outlook, could_decide, foresee

FRESH_S = 10.0
_FRESH_RATIO = 0.05
_FRESH_AT_LEAST_S = 1.0
# the draws are the same for so long, so that the range does not flicker
_SEED_S = 300.0
NOTHING_LEFT = Estimate(low_s=0.0, mid_s=0.0, high_s=0.0)
_RUN = ""
NO_SHARE = "its class has no concurrency left for it"
STALLED = "stalled"
_NEAR = Unknown(why="estimating: near its end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Time left by partition name and of the run; `decided_by` is the partition that ends last."""

    partitions: Mapping[str, Estimate | Unknown]
    run: Estimate | Unknown
    decided_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the ends follow from. `silence`: why nothing can come now, of the run.

    `silences`: the same of single partitions. `budget_tokens`: the run's budget, of which
    `budget_left_tokens` are left.
    """

    views: Sequence[Outlook]
    spec: RunSpec
    at_s: float
    silence: str | None = None
    silences: Mapping[str, str] = field(default_factory=dict)
    budget_tokens: int | None = None
    budget_left_tokens: int | None = None


@dataclass(slots=True)
class EndMemory:
    """What was said of one run before. Used by one thread at a time."""

    _key: object = None
    _controls: object = None
    _sure: frozenset[str] = frozenset()
    _made_at_s: float = 0.0
    _fresh_s: float = 0.0
    _found: Forecast | Unknown = field(default_factory=lambda: Unknown(why="estimating"))
    _work: dict[str, float] = field(default_factory=dict)
    _seen: Seen = field(default_factory=lambda: Seen(observed_s=0.0, n_changes=0))
    _shown: dict[str, Shown] = field(default_factory=dict)

    def ends(self, facts: Facts, see: Callable[[], Seen]) -> Ends:
        """Return the time left of every partition and of the run; `see` tells the recent past."""
        going = [view for view in facts.views if view.goes_on]
        is_new = self._renew(facts, going, see)
        each = {
            view.partition.name: self._of_partition(view, facts, is_new=is_new)
            for view in facts.views
        }
        run = self._of_run(facts, going, is_new=is_new)
        if not isinstance(run, Estimate) or not isinstance(self._found, Forecast):
            return Ends(partitions=each, run=run)
        named = {view.partition.name: each[view.partition.name] for view in going}
        shown = {name: left for name, left in named.items() if isinstance(left, Estimate)}
        decided_by = self._found.decided_by
        last = max(shown, key=lambda name: shown[name].mid_s, default=None)
        if last is not None and shown[last].mid_s > run.mid_s:
            decided_by = last
        run = at_least(run, list(shown.values()))
        return Ends(partitions=each, run=run, decided_by=decided_by)

    def _renew(self, facts: Facts, going: Sequence[Outlook], see: Callable[[], Seen]) -> bool:
        """Make the forecast anew if it is due; return whether it was."""
        paused = [v for v in facts.views if not v.partition.is_over and not v.goes_on]
        key = (*self._changed(facts, going), facts.silence)
        age_s = facts.at_s - self._made_at_s
        fresh_s = _FRESH_AT_LEAST_S if self._has_run_out(going, facts.at_s) else self._fresh_s
        if key == self._key and 0 <= age_s < fresh_s:
            return False
        self._key, self._made_at_s = key, facts.at_s
        self._seen = see()
        self._found = Unknown(why="estimating")
        self._work = {}
        self._fresh_s = _FRESH_AT_LEAST_S
        if facts.silence is not None:
            self._shown.clear()
            return True
        seed = int(facts.at_s / _SEED_S)
        if going:
            self._found = foresee(
                going, facts.spec, self._seen, facts.budget_left_tokens, seed=seed
            )
        if paused:
            whole = foresee([*going, *paused], facts.spec, self._seen, seed=seed)
            if isinstance(whole, Forecast):
                self._work = {
                    view.partition.name: whole.ends[view.partition.name].mid_s for view in paused
                }
        if isinstance(self._found, Forecast):
            left_s = self._found.run.mid_s
            self._fresh_s = min(FRESH_S, max(_FRESH_AT_LEAST_S, _FRESH_RATIO * left_s))
        return True

    def _changed(self, facts: Facts, going: Sequence[Outlook]) -> tuple[object, object]:
        """Forget what was shown and no longer holds; return what it holds for."""
        controls = (tuple(_wanted(view.partition) for view in facts.views), facts.budget_tokens)
        if controls != self._controls:
            self._controls = controls
            self._shown.clear()
        sure = frozenset(view.partition.name for view in going if few(view) is None)
        if sure - self._sure:  # what was said of the run was said without them
            self._shown.pop(_RUN, None)
        self._sure = sure
        return controls, sure

    def _has_run_out(self, going: Sequence[Outlook], at_s: float) -> bool:
        """Return whether something that goes on was counted down to nothing."""
        shown = [self._shown.get(name) for name in (_RUN, *(v.partition.name for v in going))]
        return any(each is not None and each.passed(at_s).high_s <= 0 for each in shown)

    def _of_partition(self, view: Outlook, facts: Facts, *, is_new: bool) -> Estimate | Unknown:
        partition = view.partition
        if partition.is_over:
            return NOTHING_LEFT
        if partition.state is PartitionState.PAUSED:
            return Unknown(why="paused", work_s=self._work.get(partition.name))
        silence = facts.silence or facts.silences.get(partition.name) or no_lengths(view)
        if silence is not None:
            self._shown.pop(partition.name, None)
            return Unknown(why=silence)
        left = few(view) or self._shown_end(partition.name, facts.at_s, is_new=is_new)
        return _NEAR if _is_nothing(left) and is_open(view) else left

    def _of_run(
        self, facts: Facts, going: Sequence[Outlook], *, is_new: bool
    ) -> Estimate | Unknown:
        if not going:
            paused = any(not view.partition.is_over for view in facts.views)
            return Unknown(why="all that is left is paused") if paused else NOTHING_LEFT
        silence = facts.silence or _silence_of_all(facts, going)
        unknown = self._unknown(facts, going)
        if silence is None and unknown is None:
            left = self._shown_end(_RUN, facts.at_s, is_new=is_new)
            is_any_open = any(is_open(view) for view in going)
            return _NEAR if _is_nothing(left) and is_any_open else left
        self._shown.pop(_RUN, None)
        if silence is None and unknown is not None:
            silence = no_lengths(unknown)
            if silence is None:
                why = few(unknown)
                if why is not None and len(facts.views) > 1:  # not of the run: say whose
                    why = Unknown(why=f"{why.why}, in {unknown.partition.name}")
                return why or Unknown(why="estimating")
        return Unknown(why=silence or "estimating")

    def _unknown(self, facts: Facts, going: Sequence[Outlook]) -> Outlook | None:
        """Return the first partition of which too little is known to speak of the run's end.

        One that could not end last, or waits for its turn, may be taken to be like its class.
        """
        sure = {view.partition.class_name for view in going if few(view) is None}
        for view in going:
            if no_lengths(view) or view.partition.class_name not in sure:
                return view
            waits = facts.silences.get(view.partition.name) == NO_SHARE
            if few(view) is None or waits or not isinstance(self._found, Forecast):
                continue
            is_unseen = view.partition.name in facts.silences and not _has_ended(view)
            if is_unseen or could_decide(view, going, facts.spec, self._found):
                return view
        return None

    def _shown_end(self, name: str, at_s: float, *, is_new: bool) -> Estimate | Unknown:
        if isinstance(self._found, Unknown):
            return self._found
        new = self._found.run if name == _RUN else self._found.ends[name]
        seen = self._seen
        withheld = not_steady(new.mid_s, seen.observed_s, is_again=seen.n_changes > 0)
        if withheld is not None:
            self._shown.pop(name, None)
            return withheld
        before = self._shown.get(name)
        if is_new or before is None:
            self._shown[name] = smoothed(new, before, at_s, seen.n_changes)
        return self._shown[name].passed(at_s)


def _wanted(partition: PartitionView) -> tuple[object, ...]:
    """Return what people set of a partition, and whether it is over: ends move at once with it.

    A deadline is not among it: it cuts what is shown (`figures/landings`), and moves no forecast.
    """
    return (
        partition.name,
        partition.state,
        partition.is_over,
        partition.goal_samples,
        partition.token_budget,
        partition.own_concurrency,
        partition.max_new_tokens,
    )


def _has_ended(view: Outlook) -> bool:
    """Return whether any sample of it has: how long its answers are is then not all guesswork."""
    return view.partition.counts.kept + view.partition.counts.failed > 0


def _silence_of_all(facts: Facts, going: Sequence[Outlook]) -> str | None:
    """Return why the run has no end: nothing comes for any, or one of them stands still."""
    silent = [facts.silences.get(view.partition.name) for view in going]
    for view, why in zip(going, silent, strict=True):
        if why == STALLED:
            return f"{view.partition.name} is {STALLED}"
    return silent[0] if all(silent) else None


def _is_nothing(left: Estimate | Unknown) -> bool:
    return isinstance(left, Estimate) and left.high_s <= 0
