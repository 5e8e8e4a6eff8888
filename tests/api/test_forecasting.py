"""When partitions that share a concurrency will have ended together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.estimate import Estimate, Remaining, Speed
from app.core.states import PartitionState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.core.views import PartitionView
from app.figures.forecasting import Outlook, joint_end, run_end
from tests.api.test_figures import Hands


def view(name: str, tokens: float, speed: float, own_concurrency: int | None = None) -> Outlook:
    partition = PartitionView(
        id=PartitionId(1),
        run_id=RunId(1),
        name=name,
        class_name="short",
        state=PartitionState.ACTIVE,
        state_since=Hands().now(),
        reason="",
        prompts_path="",
        intake="tokenized",
        own_concurrency=own_concurrency,
        token_budget=None,
        goal_samples=None,
        max_new_tokens=100,
        counts=Counts(pending=1),
        tokens=Tokens(),
        reserved_tokens=0,
        n_tokenized=1,
        token_file_tokens=1,
        budget_reached=False,
        sealed_at=None,
    )
    return Outlook(
        partition=partition,
        left=Remaining(tokens=tokens),
        speed=Speed(tokens_per_s=speed, observed_s=60.0),
        known=None,
    )


def test_partitions_of_one_end_give_no_range() -> None:
    end = joint_end([view("A", 1_000, 10), view("B", 1_000, 10)])
    assert end == Estimate(low_s=100.0, mid_s=100.0, high_s=100.0)


def test_one_that_ends_early_widens_the_range_up_to_the_slowest() -> None:
    end = joint_end([view("A", 0, 10), view("B", 2_000, 10)])
    assert end == Estimate(low_s=100.0, mid_s=150.0, high_s=200.0)


def test_one_with_its_own_concurrency_gets_no_share_of_others() -> None:
    end, _ = run_end([view("A", 0, 10), view("B", 2_000, 10, own_concurrency=4)], None, None)
    assert isinstance(end, Estimate)
    assert end.mid_s == pytest.approx(200.0)


@given(
    st.lists(st.tuples(st.floats(1, 1e6), st.floats(0.1, 1e4)), min_size=1, max_size=6),
)
def test_the_end_of_the_run_is_ordered_and_not_before_the_slowest(
    parts: list[tuple[float, float]],
) -> None:
    end, _ = run_end([view(str(n), *each) for n, each in enumerate(parts)], None, None)
    assert isinstance(end, Estimate)
    assert 0 <= end.low_s <= end.mid_s * (1 + 1e-9)
    assert end.mid_s <= end.high_s * (1 + 1e-9)
    assert end.high_s >= max(tokens / speed for tokens, speed in parts) * (1 - 1e-9)
