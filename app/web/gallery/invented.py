"""Invented figures of a run: every state that a page must be able to show, and hostile words."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.core.conditions import Condition, ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.loads import LoadSource, ServerLoad
from app.core.series import Chart
from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.figures import PartitionFigures, RunFigures
from app.ledger.activity import Activity

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
LEFT = Estimate(low_s=6_600, mid_s=7_500, high_s=8_700)
NOTHING_LEFT = Estimate(low_s=0, mid_s=0, high_s=0)
HOSTILE = "<img src=x onerror=window.__hit=1>\"'{{7*7}}</td></script>"

PARTITION = PartitionFigures(
    id=PartitionId(1),
    name="B1_glaive",
    class_name="short",
    state=PartitionState.ACTIVE,
    state_since=NOW,
    reason="",
    intake="tokenized",
    is_over=False,
    percent=41,
    counts=Counts(pending=6_000, running=64, ok=4_200, truncated=12),
    tokens=Tokens(received=6_300_000, kept=6_000_000, wasted=10_000, held=290_000),
    reserved_tokens=0,
    own_concurrency=None,
    token_budget_tokens=None,
    goal_samples=None,
    budget_reached=False,
    sealed_at=None,
    n_in_flight=64,
    speed_tokens_per_s=3_210.0,
    time_left=LEFT,
    last_token_at=NOW - timedelta(seconds=1),
    max_new_tokens=10_240,
    concurrency_requests=64,
    spark_tokens_per_s=(None,) * 10 + (3_000.0, 3_400.0) * 25,
)
FINISHED = replace(
    PARTITION,
    is_over=True,
    sealed_at=NOW,
    n_in_flight=0,
    percent=100,
    counts=Counts(ok=9_990, truncated=10),
    speed_tokens_per_s=None,
    concurrency_requests=None,
    time_left=NOTHING_LEFT,
)
PAUSED = replace(
    PARTITION,
    state=PartitionState.PAUSED,
    n_in_flight=0,
    counts=Counts(pending=6_064, ok=4_200),
    speed_tokens_per_s=None,
    concurrency_requests=None,
    time_left=Unknown(why="paused"),
)
DRAINING = replace(PARTITION, state=PartitionState.DRAINING, n_in_flight=9)
BUDGETED = replace(PARTITION, token_budget_tokens=10_000_000, percent=63)
STALLED = replace(
    PARTITION,
    speed_tokens_per_s=0.0,
    last_token_at=NOW - timedelta(seconds=840),
    time_left=Unknown(why="no token comes"),
)
FAILING = replace(PARTITION, counts=replace(PARTITION.counts, failed=37), own_concurrency=40)
SCANNING = replace(
    PARTITION,
    intake="scanning",
    counts=Counts(),
    tokens=Tokens(),
    n_in_flight=0,
    percent=0,
    time_left=Unknown(why="reading the prompts"),
    speed_tokens_per_s=None,
    spark_tokens_per_s=(),
)
BUDGET_USED = replace(
    FINISHED, counts=Counts(pending=4_000, ok=6_000), budget_reached=True, percent=100
)

SERVER = ServerLoad(
    url="http://localhost:30000",
    at=NOW,
    source=LoadSource.METRICS,
    version="0.5.23",
    model_path="/models/m",
    running_requests=241,
    waiting_requests=182,
    max_running_requests=256,
    kv_capacity_tokens=1_400_000,
    kv_used_tokens=994_000,
    kv_reclaimable_tokens=252_000,
    kv_free_tokens=154_000,
    tokens_per_s=15_600.0,
    prefix_hit_ratio=0.38,
    retracted_requests=3,
    first_token_p50_s=0.8,
    first_token_p99_s=6.1,
    n_first_tokens=900,
)
UNKNOWN_SERVER = ServerLoad(url="http://localhost:30001", at=NOW, source=LoadSource.NONE)
AWAY_SERVER = ServerLoad(
    url="http://localhost:30000",
    away_since=NOW - timedelta(seconds=250),
    trouble="connection refused",
)


def condition(kind: ConditionKind, sentence: str = "Something is to be looked at.") -> Condition:
    return Condition(kind=kind, since=NOW - timedelta(seconds=840), sentence=sentence)


def numbered(*several: PartitionFigures) -> tuple[PartitionFigures, ...]:
    """Give each partition an id and a name of its own."""
    return tuple(
        replace(each, id=PartitionId(n), name=f"B{n}_part") for n, each in enumerate(several, 1)
    )


RUN = RunFigures(
    run_id=RunId(7),
    name="synth_100k",
    state=RunState.RUNNING,
    state_since=NOW - timedelta(hours=14),
    reason="",
    output_dir="/data/prepared",
    at=NOW,
    percent=60,
    token_budget_tokens=None,
    speed_tokens_per_s=15_432.0,
    time_left=Estimate(low_s=32_000, mid_s=34_800, high_s=40_000),
    decided_by="long",
    conditions=(),
    partitions=numbered(PARTITION, FINISHED, PAUSED, DRAINING, BUDGETED, FAILING),
    created_at=NOW - timedelta(hours=14, minutes=32),
    heartbeat_at=NOW - timedelta(seconds=1),
    mean_hour_tokens_per_s=17_800.0,
    best_tokens_per_s=20_300.0,
    servers=(SERVER,),
)
CHART = Chart(
    begin=NOW - timedelta(hours=6),
    end=NOW,
    own_tokens_per_s=(15_000.0,) * 60 + (None,) * 8 + (16_000.0,) * 92,
    server_tokens_per_s=(15_200.0,) * 160,
)
NO_CHART = Chart(begin=NOW - timedelta(minutes=15), end=NOW)


def entry(n: int, detail: str = "B3: 64 -> 40") -> Activity:
    return Activity(
        id=n,
        at=NOW - timedelta(minutes=n),
        who="anna (page)",
        event="concurrency",
        detail=detail,
        partition_id=PartitionId(1),
    )


def hostile_run() -> RunFigures:
    """Return a run in which every text that comes from outside is hostile."""
    partition = replace(
        PARTITION, name=HOSTILE, class_name=HOSTILE, reason=HOSTILE, remarks=(HOSTILE,)
    )
    server = replace(SERVER, url=HOSTILE, version=HOSTILE, model_path=HOSTILE, trouble=HOSTILE)
    return replace(
        RUN,
        name=HOSTILE,
        reason=HOSTILE,
        output_dir=HOSTILE,
        decided_by=HOSTILE,
        partitions=(partition,),
        servers=(server,),
        conditions=(condition(ConditionKind.STALLED, HOSTILE),),
    )


STATES: dict[str, RunFigures] = {
    "running": RUN,
    "one": replace(RUN, partitions=numbered(PARTITION)),
    "many": replace(RUN, partitions=numbered(*[PARTITION] * 40)),
    "none": replace(RUN, partitions=(), time_left=NOTHING_LEFT),
    "fresh": replace(
        RUN,
        percent=0,
        speed_tokens_per_s=None,
        time_left=Unknown(why="estimating: 0 of 5 answers have ended"),
        partitions=numbered(SCANNING, replace(SCANNING, intake="scanned")),
        mean_hour_tokens_per_s=None,
        best_tokens_per_s=None,
        heartbeat_at=None,
        servers=(ServerLoad(url="http://localhost:30000"),),
    ),
    "stalled": replace(
        RUN,
        speed_tokens_per_s=0.0,
        conditions=(condition(ConditionKind.STALLED),),
        partitions=numbered(STALLED, FINISHED, PAUSED),
    ),
    "server away": replace(
        RUN,
        conditions=(condition(ConditionKind.WAITING_FOR_SERVER),),
        servers=(AWAY_SERVER, SERVER),
        time_left=Unknown(why="waiting for server"),
    ),
    "server tells nothing": replace(RUN, servers=(UNKNOWN_SERVER,)),
    "paused": replace(RUN, state=RunState.PAUSED, time_left=Unknown(why="paused")),
    "stopping": replace(RUN, state=RunState.STOPPING),
    "stopped": replace(RUN, state=RunState.STOPPED, reason="halted: 401"),
    "finished": replace(
        RUN, state=RunState.FINISHED, percent=100, partitions=numbered(FINISHED, BUDGET_USED)
    ),
    "huge": replace(
        RUN,
        speed_tokens_per_s=98_765_432.1,
        partitions=numbered(
            replace(
                PARTITION,
                counts=Counts(pending=9_999_999_999, running=10_000, ok=8_888_888_888),
                tokens=Tokens(received=9 * 10**15, kept=9 * 10**15),
                token_budget_tokens=10**16,
                time_left=Estimate(low_s=1e8, mid_s=2e8, high_s=3e8),
            )
        ),
    ),
    "hostile": hostile_run(),
}
