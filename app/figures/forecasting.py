"""When partitions and the run will have ended, from what is left and how fast it goes.

Owns how what the ledger says becomes the work of `core/forecast`: who shares slots with whom, what
goal, budget and order leave, and what is taken for a partition of which nothing is known yet.
Pure. A partition that does not work now is no part of the run's forecast.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.core.estimate import (
    MIN_ENDED,
    Left,
    Remaining,
    Unknown,
    done_share,
    remaining_tokens,
    samples_left,
)
from app.core.forecast import Forecast, forecast
from app.core.lengths import Lengths
from app.core.pace import Seen, Went
from app.core.showing import not_begun
from app.core.spec import Order, RunSpec
from app.core.states import PartitionState
from app.core.views import PartitionView
from app.core.works import Server, Work

# a partition whose lengths are not known yet is taken to be like its class, give or take half
_ASSUMED_DEVIATION_RATIO = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a partition's lengths: the model, and answers begun and not ended."""

    lengths: Lengths
    started_tokens: tuple[int, ...]
    at_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """One partition and what is left of it; `known` is None where nothing was asked."""

    partition: PartitionView
    left: Remaining | Unknown
    known: Known | None

    @property
    def goes_on(self) -> bool:
        return not self.partition.is_over and self.partition.state is not PartitionState.PAUSED


def outlook(partition: PartitionView, known: Known | None) -> Outlook:
    """Return what is left of a partition."""
    left: Remaining | Unknown
    if partition.is_over:
        left = Remaining(tokens=0.0)
    elif partition.intake == "scanning":
        left = Unknown(why="reading the prompts")
    elif known is None:
        left = Unknown(why="not measured, no service runs")
    else:
        left = remaining_tokens(_left(partition, known), known.lengths)
    return Outlook(partition=partition, left=left, known=known)


def _left(partition: PartitionView, known: Known) -> Left:
    return Left(
        counts=partition.counts,
        started_tokens=known.started_tokens,
        goal_samples=partition.goal_samples,
        budget_tokens=partition.token_budget,
        used_tokens=partition.tokens.used,
    )


def foresee(
    views: Sequence[Outlook],
    spec: RunSpec,
    seen: Seen,
    budget_left_tokens: int | None = None,
    *,
    seed: int = 0,
) -> Forecast | Unknown:
    """Return the ends of all partitions in `views`, which are taken to go on from now.

    One of which nothing is known yet is taken to be like its class, else like any other.
    """
    if seen.curve is None:
        return not_begun(seen.n_changes, has_tokens=seen.has_tokens)
    works = [_work(view, views, spec, seen) for view in views]
    server = Server(
        curve=seen.curve,
        slowness=seen.slowness,
        slownesses=seen.slownesses,
        weights=seen.weights,
        running_ratio=seen.running_ratio,
    )
    return forecast(
        works, server, _limits(views, spec), claims_tokens=budget_left_tokens, seed=seed
    )


def _lengths(view: Outlook, views: Sequence[Outlook]) -> tuple[Lengths, float]:
    """Return a partition's lengths; as long as it has none of its own, those of its likes."""
    if view.known is not None and view.known.lengths.n_finished >= MIN_ENDED:
        return view.known.lengths, 0.0
    others = [
        (other.partition.class_name != view.partition.class_name, other.known.lengths)
        for other in views
        if other.known is not None and other.known.lengths.n_finished >= MIN_ENDED
    ]
    if not others:
        return _unknown_lengths(view.partition.max_new_tokens), 1.0
    nearest = [
        each for is_foreign, each in others if is_foreign == min(foreign for foreign, _ in others)
    ]
    nearest.sort(key=Lengths.expected)
    return nearest[len(nearest) // 2], _ASSUMED_DEVIATION_RATIO


def could_decide(view: Outlook, views: Sequence[Outlook], spec: RunSpec, found: Forecast) -> bool:
    """Return whether one partition of `views` may end last, were all its answers at their limit.

    In sequence that is the last one, once its turn has come: until then it has no answers of its
    own, and its class has to speak for it.
    """
    after = {each.partition.name: _after(each.partition, views, spec) for each in views}
    name = view.partition.name
    if after[name] is not None or name in after.values():
        return False
    lengths, _ = _lengths(view, views)
    most_ratio = view.partition.max_new_tokens / max(1.0, lengths.area_above(0))
    return found.ends[name].mid_s * max(1.0, most_ratio) >= found.run.mid_s


def _unknown_lengths(cap_tokens: int) -> Lengths:
    """Return what stands in until the first answers have ended; nothing of it is shown."""
    return Lengths.learn(finished=[max(1, cap_tokens // 2)], running=(), cap=max(1, cap_tokens))


def _work(
    view: Outlook,
    views: Sequence[Outlook],
    spec: RunSpec,
    seen: Seen,
) -> Work:
    partition = view.partition
    lengths, error_ratio = _lengths(view, views)
    n_left = samples_left(partition.counts, partition.goal_samples)
    begun = sorted(view.known.started_tokens if view.known else (), reverse=True)[:n_left]
    n_fresh = n_left - len(begun)
    if partition.state is PartitionState.DRAINING:
        n_fresh = 0
    elif partition.token_budget is not None:
        room = partition.token_budget - partition.tokens.used
        expected = sum(lengths.expected(made) - made for made in begun if made < lengths.cap_tokens)
        n_fresh = min(n_fresh, max(0, int((room - expected) / max(1.0, lengths.area_above(0)))))
    went = seen.went.get(partition.id, _NOTHING_SEEN)
    return Work(
        name=partition.name,
        group=_group(partition),
        lengths=lengths,
        begun_tokens=begun,
        n_fresh=n_fresh,
        prompt_tokens=partition.token_file_tokens / max(1, partition.n_tokenized),
        n_in_flight=went.n_in_flight,
        tokens_per_slot_s=went.tokens_per_slot_s,
        observed_tokens=float(went.observed_tokens),
        mean_error_ratio=error_ratio,
        after=_after(partition, views, spec),
    )


_NOTHING_SEEN = Went(tokens_per_slot_s=0.0, n_in_flight=0.0, observed_tokens=0)


def _group(partition: PartitionView) -> str:
    """Return who shares slots: a class, or one partition whose concurrency was set by hand."""
    is_own = partition.own_concurrency is not None
    return f"{partition.class_name}/{partition.name}" if is_own else partition.class_name


def _limits(views: Sequence[Outlook], spec: RunSpec) -> Mapping[str, float]:
    limits: dict[str, float] = {}
    own: dict[str, int] = {}
    for view in views:
        partition = view.partition
        if partition.own_concurrency is not None:
            limits[_group(partition)] = partition.own_concurrency
            taken = own.get(partition.class_name, 0)
            own[partition.class_name] = taken + partition.own_concurrency
    for view in views:
        name = view.partition.class_name
        # what hands have taken whole comes back only at their end
        limits.setdefault(name, max(1, spec.classes[name].concurrency - own.get(name, 0)))
    return limits


def _after(partition: PartitionView, views: Sequence[Outlook], spec: RunSpec) -> str | None:
    """Return the partition that must have ended before this one's turn comes."""
    if spec.order is not Order.SEQUENCE:
        return None
    mine = [
        each.partition.name for each in views if each.partition.class_name == partition.class_name
    ]
    place = mine.index(partition.name)
    return mine[place - 1] if place else None


def progress_percent(partition: PartitionView) -> int:
    """Return 0-100, rounded down; 100 only when nothing is left that may be done (prg-02)."""
    share = progress_share(partition)
    return 100 if partition.is_over else min(99, int(100 * share))


def progress_share(partition: PartitionView) -> Fraction:
    """Return how far it is, 0 to 1: by whichever of goal, input and budget is nearer to its end."""
    if partition.intake == "scanning":
        return Fraction(0)
    if partition.is_over:
        return Fraction(1)
    share = done_share(partition.counts, partition.goal_samples)
    if partition.token_budget:
        share = max(share, Fraction(partition.tokens.used, partition.token_budget))
    return min(share, Fraction(1))
