"""What a preflight found. Owns the shape only; each sentence says what is wrong and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.core.spec import PartitionSpec
from app.core.types import ServerFacts


@dataclass(slots=True)
class Findings:
    """Filled by the checks, in their order."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`errors` stop a start. `facts` are by server address; partitions have their limits."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notices: tuple[str, ...]
    facts: Mapping[str, ServerFacts]
    prompts: Mapping[str, Path]
    partitions: Mapping[str, PartitionSpec]
