"""What the ledger says of partitions becomes the ends that are shown."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from app.core.estimate import Estimate, Unknown
from app.core.forecast import Forecast
from app.core.lengths import Lengths
from app.core.pace import Seen, Went
from app.core.rates import StepCurve
from app.core.spec import ClassSpec, Order, RunSpec
from app.core.states import PartitionState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.core.views import PartitionView
from app.figures.ends import EndMemory, Ends, Facts
from app.figures.forecasting import Known, Outlook, foresee, outlook
from app.figures.speedometer import lengths_fresh_s

SPEC = RunSpec(
    name="night",
    server_urls=("http://127.0.0.1:1",),
    prompts_dir="p",
    output_dir="o",
    classes={
        "short": ClassSpec(concurrency=10, max_new_tokens=1_000),
        "long": ClassSpec(concurrency=10, max_new_tokens=1_000),
    },
    partitions={},
)
LENGTHS = Lengths.learn(finished=[100] * 200, running=[], cap=1_000)


def view(name: str, n_pending: int, n_kept: int = 100, **changes: object) -> Outlook:
    partition = PartitionView(
        id=PartitionId(ord(name[0])),
        run_id=RunId(1),
        name=name,
        class_name="short",
        state=PartitionState.ACTIVE,
        state_since=datetime.fromisoformat("2024-05-01T00:00:00+00:00"),
        reason="",
        prompts_path="",
        intake="tokenized",
        own_concurrency=None,
        token_budget=None,
        goal_samples=None,
        max_new_tokens=1_000,
        counts=Counts(pending=n_pending, ok=n_kept),
        tokens=Tokens(received=100 * n_kept, kept=100 * n_kept),
        reserved_tokens=0,
        n_tokenized=1,
        token_file_tokens=1,
        budget_reached=False,
        sealed_at=None,
    )
    known = Known(lengths=LENGTHS, started_tokens=())
    return outlook(replace(partition, **changes), known)  # type: ignore[arg-type]  # by name


def seen(observed_s: float = 600.0, n_changes: int = 0, slot_speed: float = 10.0) -> Seen:
    """Return a server that gives each stream so many tokens a second, however many run."""
    went = Went(tokens_per_slot_s=slot_speed, n_in_flight=10.0, observed_tokens=10_000)
    return Seen(
        observed_s=observed_s,
        n_changes=n_changes,
        curve=StepCurve(start_s=1 / slot_speed, per_request_s=1e-12),
        went={PartitionId(ord(name)): went for name in "A"},
    )


def forecast_of(*views: Outlook, **more: object) -> Forecast:
    found = foresee(views, SPEC, seen(), **more)  # type: ignore[arg-type]  # by name
    assert isinstance(found, Forecast)
    return found


def test_a_class_shares_its_concurrency_and_the_run_names_the_partition_that_ends_last() -> None:
    found = forecast_of(view("A", 1_000), view("B", 2_000))

    assert found.run.mid_s == pytest.approx(3_000, rel=0.05)
    assert found.decided_by == "B"


def test_a_concurrency_of_its_own_is_taken_from_the_class() -> None:
    found = forecast_of(view("B", 1_000, own_concurrency=8), view("C", 1_000))

    assert found.ends["B"].mid_s == pytest.approx(1_000 * 100 / 80, rel=0.05)
    assert found.ends["C"].mid_s == pytest.approx(1_000 * 100 / 20, rel=0.05)


def test_goal_budget_and_drain_leave_less() -> None:
    assert forecast_of(view("A", 1_000, goal_samples=600)).run.mid_s == pytest.approx(500, rel=0.05)
    budget = forecast_of(view("A", 1_000, token_budget=60_000))
    assert budget.run.mid_s == pytest.approx(500, rel=0.05)
    drained = forecast_of(view("A", 1_000, state=PartitionState.DRAINING))
    assert drained.run.mid_s == 0.0


def test_the_budget_of_the_run_ends_it() -> None:
    both = (view("A", 1_000), view("B", 1_000))

    assert forecast_of(*both).run.mid_s == pytest.approx(2_000, rel=0.05)
    assert forecast_of(*both, budget_left_tokens=100_000).run.mid_s == pytest.approx(
        1_000, rel=0.07
    )


def test_in_sequence_the_later_one_waits_for_the_earlier() -> None:
    spec = replace(SPEC, order=Order.SEQUENCE)
    found = foresee([view("A", 1_000), view("B", 1_000)], spec, seen())

    assert isinstance(found, Forecast)
    assert found.ends["A"].mid_s == pytest.approx(1_000, rel=0.05)
    assert found.ends["B"].mid_s == pytest.approx(2_000, rel=0.05)


def test_one_of_which_nothing_is_known_is_taken_to_be_like_its_class() -> None:
    new = view("B", 1_000, n_kept=0)
    empty = Lengths.learn(finished=[], running=[], cap=1_000)
    new = replace(new, known=Known(lengths=empty, started_tokens=()))
    found = forecast_of(view("A", 1_000), new)

    assert found.ends["B"].mid_s == pytest.approx(2_000, rel=0.1)
    # give or take half: its range says how little is known
    assert found.ends["B"].high_s > 1.4 * found.ends["B"].mid_s


def ends(
    memory: EndMemory, views: Sequence[Outlook], at_s: float, past: Seen, **more: object
) -> Ends:
    facts = Facts(views=views, spec=SPEC, at_s=at_s, **more)  # type: ignore[arg-type]  # by name
    return memory.ends(facts, lambda: past)


def test_it_is_withheld_until_enough_was_seen_and_counts_down_between_forecasts() -> None:
    memory, views = EndMemory(), [view("A", 90_000)]

    assert ends(memory, views, 0.0, seen(480.0)).run == Unknown(why="estimating (2m)")
    first = ends(memory, views, 20.0, seen(600.0)).run
    assert isinstance(first, Estimate)
    # five seconds on nothing is forecast anew, whatever has been seen since
    later = ends(memory, views, 25.0, seen(605.0, slot_speed=1.0)).run
    assert isinstance(later, Estimate)
    assert later.mid_s == pytest.approx(first.mid_s - 5)
    tenth = ends(memory, views, 30.0, seen(610.0, slot_speed=1.0)).run
    assert isinstance(tenth, Estimate)
    # ten times as long: a third of the way there
    assert tenth.mid_s == pytest.approx((2 * (first.mid_s - 10) + 10 * first.mid_s) / 3, rel=0.01)


def test_a_control_change_is_re_estimated_and_then_shown_at_once() -> None:
    memory, views = EndMemory(), [view("A", 90_000)]
    first = ends(memory, views, 0.0, seen(600.0)).run
    assert isinstance(first, Estimate)

    again = ends(memory, views, 20.0, seen(420.0, n_changes=1)).run
    assert again == Unknown(why="re-estimating (3m)")
    new = ends(memory, views, 40.0, seen(600.0, n_changes=1, slot_speed=1.0)).run
    assert isinstance(new, Estimate)
    assert new.mid_s == pytest.approx(10 * first.mid_s, rel=0.01)


def test_prg_01_few_answers_of_this_session_are_estimating_and_then_within_a_quarter() -> None:
    """1,000 rows, 900 done before, one in flight, each takes a second."""
    spec = replace(SPEC, classes={"short": ClassSpec(concurrency=1, max_new_tokens=1_000)})

    def at(second: int) -> Estimate | Unknown:
        went = Went(tokens_per_slot_s=100.0, n_in_flight=1.0, observed_tokens=100 * second)
        past = Seen(
            observed_s=second - 1.0,
            n_changes=0,
            curve=StepCurve(start_s=0.01, per_request_s=1e-12),
            went={PartitionId(ord("A")): went},
        )
        views = [view("A", 100 - second, n_kept=900 + second)]
        return EndMemory().ends(Facts(views=views, spec=spec, at_s=second), lambda: past).run

    first, later = at(1), at(15)
    assert isinstance(first, Unknown)
    assert "estimating" in first.why
    assert isinstance(later, Estimate)
    assert later.mid_s == pytest.approx(85, rel=0.25)


def test_a_paused_partition_says_how_much_work_it_is() -> None:
    paused = view("B", 1_000, state=PartitionState.PAUSED)
    found = ends(EndMemory(), [view("A", 1_000), paused], 0.0, seen())

    work = found.partitions["B"]
    assert isinstance(work, Unknown)
    assert work.why == "paused"
    assert work.work_s == pytest.approx(2_000, rel=0.05)
    assert isinstance(found.run, Estimate)
    assert found.run.mid_s == pytest.approx(1_000, rel=0.05)
    assert found.decided_by == "A"
    alone = ends(EndMemory(), [paused], 0.0, seen())
    assert alone.run == Unknown(why="all that is left is paused")


def test_what_is_silent_has_no_end() -> None:
    views = [view("A", 1_000), view("B", 1_000)]

    stalled = ends(EndMemory(), views, 0.0, seen(), silence="stalled")
    assert stalled.run == stalled.partitions["A"] == Unknown(why="stalled")
    one = ends(EndMemory(), views, 0.0, seen(), silences={"A": "no tokens are coming"})
    assert one.partitions["A"] == Unknown(why="no tokens are coming")
    assert isinstance(one.run, Estimate)


def test_too_few_answers_of_a_class_withhold_the_run() -> None:
    views = [view("A", 9_000), view("B", 9_000, n_kept=4, class_name="long")]
    found = ends(EndMemory(), views, 0.0, seen())

    assert isinstance(found.partitions["A"], Estimate)
    assert found.run == Unknown(why="estimating: 4 of 50 answers have ended, in B")


def test_thousands_of_lengths_are_read_less_often_but_not_near_the_end() -> None:
    def fresh_s(n_ended: int, n_begun: int, counts: Counts) -> float:
        lengths = Lengths.learn(finished=[100] * n_ended, running=[], cap=1_000)
        last = Known(lengths=lengths, started_tokens=(7,) * n_begun)
        return lengths_fresh_s(last, replace(view("A", 0).partition, counts=counts))

    amid, last_ones = Counts(pending=5_000, running=32), Counts(running=32)
    assert fresh_s(99, 32, amid) == 1
    assert fresh_s(999, 32, amid) == 10
    assert fresh_s(1_000, 32, amid) == 30
    assert fresh_s(1_000, 150, amid) == 10
    assert fresh_s(1_000, 32, last_ones) == 10
