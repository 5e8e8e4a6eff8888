"""The figures as JSON and back: nothing is lost, nothing is made up."""

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import from_ms
from app.core.conditions import Condition, ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.landing import EndsBy, Landing
from app.core.loads import LoadSource, ServerLoad
from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.figures import PartitionFigures, RunFigures, from_json, load_from_json, to_json

START = datetime(2025, 3, 1, 12, tzinfo=UTC)
moments = st.integers(0, 10**12).map(from_ms)
maybe_moment = st.none() | moments
amounts = st.integers(0, 10**12)
speeds = st.none() | st.floats(0, 1e9)
left = st.builds(Unknown, why=st.text(max_size=9)) | st.builds(
    Estimate, low_s=st.floats(0, 1e6), mid_s=st.floats(0, 1e6), high_s=st.floats(0, 1e6)
)
loads = st.builds(
    ServerLoad,
    url=st.text(max_size=9),
    at=maybe_moment,
    away_since=maybe_moment,
    source=st.sampled_from(LoadSource),
    started_at=maybe_moment,
    progressed_at=maybe_moment,
    running_requests=st.none() | amounts,
    kv_used_tokens=st.none() | amounts,
    used_ratio=st.none() | st.floats(0, 1),
    tokens_per_s=speeds,
)
ends = st.none() | st.builds(Landing, percent=st.integers(0, 99), by=st.sampled_from(EndsBy))
partitions = st.builds(
    PartitionFigures,
    id=amounts.map(PartitionId),
    state=st.sampled_from(PartitionState),
    state_since=moments,
    counts=st.builds(Counts, **dict.fromkeys(("pending", "ok", "failed"), amounts)),
    tokens=st.builds(Tokens, received=amounts, kept=amounts, wasted=amounts, held=amounts),
    sealed_at=maybe_moment,
    last_token_at=maybe_moment,
    speed_tokens_per_s=speeds,
    time_left=left,
    remarks=st.lists(st.text(max_size=9), max_size=2).map(tuple),
    concurrency_requests=st.none() | amounts,
    spark_tokens_per_s=st.lists(speeds, max_size=60).map(tuple),
    deadline_at=maybe_moment,
    ends=ends,
)
runs = st.builds(
    RunFigures,
    run_id=amounts.map(RunId),
    state=st.sampled_from(RunState),
    percent=st.integers(0, 100),
    token_budget_tokens=st.none() | amounts,
    deadline_at=maybe_moment,
    ends=ends,
    state_since=moments,
    at=moments,
    created_at=maybe_moment,
    heartbeat_at=maybe_moment,
    speed_tokens_per_s=speeds,
    mean_hour_tokens_per_s=speeds,
    best_tokens_per_s=speeds,
    time_left=left,
    conditions=st.lists(
        st.builds(
            Condition,
            kind=st.sampled_from(ConditionKind),
            since=moments,
            sentence=st.text(max_size=9),
            partition=st.sampled_from(["", "B1_chat"]),
            ratio=st.none() | st.floats(0, 1),
            wastes=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    partitions=st.lists(partitions, max_size=2).map(tuple),
    servers=st.lists(loads, max_size=2).map(tuple),
)


@settings(max_examples=40, deadline=None)
@given(runs)
def test_figures_come_back_as_they_were_sent(figures: RunFigures) -> None:
    assert from_json(json.loads(json.dumps(to_json(figures)))) == figures


def test_what_a_later_version_adds_to_a_server_is_left_out() -> None:
    value = {"url": "u", "source": "metrics", "at": (START + timedelta(1)).isoformat(), "new": 1}

    load = load_from_json(value)

    assert load == ServerLoad(url="u", source=LoadSource.METRICS, at=START + timedelta(1))
