"""Two invented runs to be compared, and one of which little is known."""

from dataclasses import replace
from datetime import timedelta

from app.core.states import RunState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.recorder.hindsight import RunPast
from app.web.compare.sides import Side
from app.web.gallery.invented import FINISHED, HOSTILE, NOW, PARTITION, RUN, hostile_run, numbered
from app.web.gallery.invented_parts import SPEC

_PAST = RunPast(
    id=RunId(7),
    name=RUN.name,
    state=RUN.state,
    reason="",
    begin=NOW - timedelta(hours=14),
    opened_at=NOW - timedelta(hours=14),
    ended_at=None,
    seen_until=NOW,
    active_s=47_000.0,
    paused_s=3_400.0,
    unserved_s=0.0,
    finished_s=0.0,
    mean_tokens_per_s=15_200.0,
    best_tokens_per_s=20_300.0,
    n_rows=5_000,
    verdict=None,
    partitions=(),
    conditions=(),
)
_FINGERPRINT = {
    "model_path": "/models/m",
    "temperature": 1.0,
    "top_p": 0.95,
    "prompts@B1_part": ["jsonl", "9f" * 32],
    "max_new_tokens@B1_part": 10_240,
}
ONE = Side(
    figures=RUN,
    past=_PAST,
    spec=SPEC,
    fingerprint=_FINGERPRINT,
    server={"version": "0.5.23", "model_path": "/models/m"},
    gen_id="g1",
)
OTHER = Side(
    figures=replace(
        RUN,
        run_id=RunId(9),
        name="synth_100k-again",
        state=RunState.FINISHED,
        state_since=NOW - timedelta(hours=5),
        percent=100,
        partitions=(
            *numbered(
                replace(FINISHED, tokens=replace(PARTITION.tokens, kept=41_000_000)),
                replace(FINISHED, counts=Counts(ok=9_000, truncated=900, failed=100)),
            ),
            replace(FINISHED, id=PartitionId(8), name="B8_only_here"),
        ),
    ),
    past=replace(_PAST, active_s=31_000.0, paused_s=0.0, mean_tokens_per_s=31_900.0),
    spec=replace(SPEC, max_attempts=5, token_budget_tokens=400_000_000),
    fingerprint={
        **_FINGERPRINT,
        "temperature": 0.7,
        "prompts@B1_part": ["jsonl", "3c" * 32],
        "max_new_tokens@B1_part": 16_384,
    },
    server={"version": "0.5.12", "model_path": "/models/m", "dtype": "bfloat16"},
    gen_id="g1",
)
WITHOUT_FIGURES = Side(
    figures=replace(
        OTHER.figures,
        run_id=RunId(10),
        name="just begun",
        state=RunState.PAUSED,
        percent=0,
        partitions=tuple(
            replace(each, counts=Counts(), tokens=Tokens(), percent=0) for each in RUN.partitions
        ),
    ),
    past=replace(_PAST, active_s=0.0, paused_s=0.0, mean_tokens_per_s=None, best_tokens_per_s=None),
    spec=SPEC,
    fingerprint={},
    server={},
    gen_id="g2",
)
HOSTILE_SIDE = replace(
    OTHER,
    figures=replace(hostile_run(), run_id=RunId(11)),
    fingerprint={HOSTILE: HOSTILE, "model_path": "/models/" + "m" * 300},
    server={"version": HOSTILE},
    gen_id=HOSTILE,
)
