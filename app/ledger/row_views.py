"""Rows of runs and partitions as the values of `core/views.py`. Decides nothing, asks nothing."""

from datetime import datetime

from sqlalchemy import RowMapping

from app.clock import from_ms
from app.core.states import PartitionState, RunState, SampleState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.core.views import PartitionView, RunView


def run_view(row: RowMapping) -> RunView:
    return RunView(
        id=RunId(row["id"]),
        name=row["name"],
        state=RunState(row["state"]),
        state_since=from_ms(row["state_since_at_ms"]),
        reason=row["reason"],
        spec_json=row["spec_json"],
        output_dir=row["output_dir"],
        token_budget=row["token_budget"],
        fingerprint_json=row["fingerprint_json"],
        gen_id=row["gen_id"],
        created_at=from_ms(row["created_at_ms"]),
        deadline_at=_moment(row["deadline_at_ms"]),
    )


def partition_view(row: RowMapping) -> PartitionView:
    return PartitionView(
        id=PartitionId(row["id"]),
        run_id=RunId(row["run_id"]),
        name=row["name"],
        class_name=row["class_name"],
        state=PartitionState(row["state"]),
        state_since=from_ms(row["state_since_at_ms"]),
        reason=row["reason"],
        prompts_path=row["prompts_path"],
        intake=row["intake"],
        own_concurrency=row["own_concurrency"],
        token_budget=row["token_budget"],
        goal_samples=row["goal_samples"],
        max_new_tokens=row["max_new_tokens"],
        counts=Counts(**{state.value: row[f"n_{state}"] for state in SampleState}),
        tokens=Tokens(
            received=row["received_tokens"],
            kept=row["kept_tokens"],
            wasted=row["wasted_tokens"],
            held=row["held_tokens"],
        ),
        reserved_tokens=row["reserved_tokens"],
        n_tokenized=row["n_tokenized"],
        n_waiting=row["n_waiting"],
        token_file_tokens=row["token_file_tokens"],
        budget_reached=bool(row["budget_reached"]),
        sealed_at=_moment(row["sealed_at_ms"]),
        deadline_at=_moment(row["deadline_at_ms"]),
    )


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else from_ms(at_ms)
