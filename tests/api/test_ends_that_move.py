"""When the shown time left of a run is withheld, raised, and replaced at once."""

from dataclasses import replace

import pytest

from app.core.estimate import Estimate, Unknown
from app.core.lengths import Lengths
from app.core.pace import Seen
from app.core.spec import Order
from app.core.states import PartitionState
from app.core.types import Counts, RunId
from app.figures.ends import NO_SHARE, EndMemory, Facts
from app.figures.forecasting import Known, Outlook, outlook
from app.figures.speedometer import Speedometer
from app.ledger import runs
from tests.api.home import Home
from tests.api.test_figures import pulse
from tests.api.test_forecasting import LENGTHS, SPEC, ends, seen, view


def new(name: str, n_pending: int, n_ended: int, length: int = 100) -> Outlook:
    """Return a partition of which only so many answers have ended."""
    lengths = Lengths.learn(finished=[length] * n_ended, running=[], cap=1_000)
    partition = view(name, n_pending, n_kept=n_ended).partition
    return outlook(partition, Known(lengths=lengths, started_tokens=()))


def shown(left: Estimate | Unknown) -> float:
    assert isinstance(left, Estimate), left
    return left.mid_s


def test_the_run_is_withheld_until_all_that_may_end_last_have_answers_of_their_own() -> None:
    memory, first = EndMemory(), view("A", 200)
    early = ends(memory, [first, new("B", 200, 3, 800)], 0.0, seen())

    assert early.partitions["B"] == Unknown(why="estimating: 3 of 5 answers have ended")
    assert early.run == Unknown(why="estimating: 3 of 5 answers have ended, in B")
    known = ends(memory, [first, new("B", 200, 5, 800)], 1.0, seen())
    assert shown(known.run) >= shown(known.partitions["B"]) == pytest.approx(1_800, rel=0.15)


def test_one_that_cannot_end_last_or_waits_for_its_turn_does_not_withhold_the_run() -> None:
    small = ends(EndMemory(), [view("A", 9_000), new("B", 8, 3)], 0.0, seen())
    assert isinstance(small.run, Estimate)

    both = [view("A", 2_000), new("B", 2_000, 0)]
    share = ends(EndMemory(), both, 0.0, seen(), silences={"B": NO_SHARE})
    assert isinstance(share.run, Estimate)
    in_sequence = Facts(views=both, spec=replace(SPEC, order=Order.SEQUENCE), at_s=0.0)
    assert isinstance(EndMemory().ends(in_sequence, seen).run, Estimate)
    begun = replace(in_sequence, views=both[1:], at_s=1.0)
    assert isinstance(EndMemory().ends(begun, seen).run, Unknown)


def test_a_run_shown_without_new_ones_is_not_smoothed_from_then() -> None:
    memory, big = EndMemory(), view("A", 9_000)
    silent = {"B": "no tokens are coming"}
    without = ends(memory, [big, new("B", 40, 3)], 0.0, seen(), silences=silent)
    assert shown(without.run) == pytest.approx(9_000, rel=0.05)

    # it turns out that there is far more of it; its own row does not say so
    with_it = ends(memory, [big, new("B", 9_000, 60, 900)], 5.0, seen(), silences=silent)
    assert shown(with_it.run) == pytest.approx(90_000, rel=0.1)


def test_the_run_is_never_less_than_a_partition_shown_beside_it() -> None:
    memory, silent = EndMemory(), {"B": "no tokens are coming"}
    both = [view("A", 100), view("B", 9_000)]
    slow = seen(slot_speed=1.0)
    # the run was said while it went fast; what was silent meanwhile is said anew
    ends(memory, both, 0.0, seen(), silences=silent)
    found = ends(memory, both, 20.0, slow, silences={})

    b = found.partitions["B"]
    assert isinstance(b, Estimate)
    assert isinstance(found.run, Estimate)
    assert found.run.low_s >= b.low_s
    assert found.run.mid_s >= b.mid_s == pytest.approx(91_000, rel=0.1)
    assert found.run.high_s >= b.high_s
    assert found.decided_by == "B"


def test_what_ends_last_is_named_as_the_rows_show_it() -> None:
    memory, known = EndMemory(), [view("A", 1_100), view("B", 1_000)]
    ends(memory, [*known, new("C", 8, 3)], 0.0, seen(slot_speed=1.0))
    silent = {"A": "no tokens are coming"}
    # the run is said anew, B comes down slowly, and A says nothing
    found = ends(memory, [*known, new("C", 8, 60)], 1.0, seen(), silences=silent)

    assert shown(found.run) == shown(found.partitions["B"]) > 10_000
    assert found.decided_by == "B"


@pytest.mark.parametrize(
    ("before", "after", "mid_s"),
    [
        ({}, {"goal_samples": 200}, 100),
        ({"goal_samples": 200}, {}, 9_000),
        ({}, {"token_budget": 20_000}, 100),
        ({"max_new_tokens": 999}, {"counts": Counts(pending=90_000, ok=100)}, 90_000),
    ],
)
def test_what_people_set_is_shown_at_once(
    before: dict[str, object], after: dict[str, object], mid_s: float
) -> None:
    memory = EndMemory()
    at_first, then = (view("A", 9_000, 100, **changes) for changes in (before, after))
    ends(memory, [at_first], 0.0, seen())
    found = ends(memory, [then], 0.5, seen())

    assert shown(found.run) == pytest.approx(mid_s, rel=0.1)
    assert shown(found.partitions["A"]) == pytest.approx(mid_s, rel=0.1)


def test_a_drain_is_shown_at_once() -> None:
    memory, known = EndMemory(), Known(lengths=LENGTHS, started_tokens=(0,))
    working = view("A", 0, counts=Counts(running=1, pending=9_000, ok=100))
    drained = replace(working.partition, state=PartitionState.DRAINING)
    ends(memory, [outlook(working.partition, known)], 0.0, seen())
    found = ends(memory, [outlook(drained, known)], 0.5, seen())

    assert shown(found.run) == pytest.approx(10, rel=0.1)


def test_a_changed_budget_of_the_run_is_shown_at_once() -> None:
    memory, both = EndMemory(), [view("A", 1_000), view("B", 1_000)]
    ends(memory, both, 0.0, seen(), budget_tokens=40_000, budget_left_tokens=20_000)
    raised = ends(memory, both, 0.5, seen(), budget_tokens=120_000, budget_left_tokens=100_000)

    assert shown(raised.run) == pytest.approx(1_000, rel=0.1)


def test_what_is_over_or_opens_again_is_shown_at_once() -> None:
    memory, small = EndMemory(), view("A", 100)
    both = [small, view("B", 9_000)]
    over = [small, view("B", 9_000, budget_reached=True)]
    ends(memory, both, 0.0, seen())
    alone = ends(memory, over, 1.0, seen())
    assert shown(alone.run) == pytest.approx(100, rel=0.1)
    again = ends(memory, both, 2.0, seen())
    assert shown(again.run) == shown(again.partitions["B"]) == pytest.approx(9_100, rel=0.1)


def test_lengths_are_learnt_anew_at_once_where_the_limit_was_changed(home: Home) -> None:
    meter, (partition, *_) = Speedometer(), runs.partitions_of(home.ledger, home.run_id)
    known = meter.known(home.ledger, partition, 0.0)
    assert meter.known(home.ledger, partition, 0.1) is known
    extended = replace(partition, max_new_tokens=2 * partition.max_new_tokens)
    assert meter.known(home.ledger, extended, 0.2).lengths.cap_tokens == extended.max_new_tokens


def test_nothing_is_at_nothing_while_samples_may_be_claimed() -> None:
    """A budget was raised by less than one answer."""
    raised = view("A", 590, token_budget=10_050)
    found = ends(EndMemory(), [raised], 0.0, seen())
    assert found.run == found.partitions["A"] == Unknown(why="estimating: near its end")

    assert ends(EndMemory(), [view("A", 0, goal_samples=3)], 0.0, seen()).run == Estimate(
        low_s=0.0, mid_s=0.0, high_s=0.0
    )


def test_what_was_counted_down_to_nothing_is_forecast_anew() -> None:
    memory, both = EndMemory(), [view("A", 1), view("B", 9_000)]
    first = shown(ends(memory, both, 0.0, seen(slot_speed=50.0)).partitions["A"])
    assert first < 5
    assert shown(ends(memory, both, 8.0, seen()).partitions["A"]) > 0


def test_before_a_speed_is_measured_it_is_not_said_that_no_tokens_have_come() -> None:
    """After a start of the service: the servers' restarts are known at the second look."""
    meter = Speedometer()
    meter.feed([pulse(5_000)], 0.0)
    assert why(meter) == "estimating: no tokens have come yet"
    meter.see_servers(RunId(1), None, 2)
    meter.feed([pulse(8_583)], 1.0)
    assert meter.shown(pulse(0).partition_id) == 3_583
    assert why(meter) == "re-estimating (10 s)"


def why(meter: Speedometer) -> str:
    past: Seen = meter.seen(RunId(1), 1.0)
    left = ends(EndMemory(), [view("A", 1_000)], 1.0, past).run
    assert isinstance(left, Unknown)
    return left.why
