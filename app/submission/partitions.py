"""A partition of a spec as a row of the ledger, and when two folders are one. Decides nothing."""

from pathlib import Path

from app.core.spec import PartitionSpec
from app.ledger.runs import NewPartition


def new_partition(name: str, partition: PartitionSpec, prompts: Path) -> NewPartition:
    """Return the row of a partition whose limits are filled in."""
    return NewPartition(
        name=name,
        class_name=partition.class_name,
        prompts_path=str(prompts.absolute()),
        max_new_tokens=partition.max_new_tokens or 1,
        own_concurrency=partition.concurrency,
        token_budget=partition.token_budget_tokens,
        goal_samples=partition.max_samples,
    )


def same_folder(one: str | Path, other: str | Path) -> bool:
    return Path(one).resolve() == Path(other).resolve()
