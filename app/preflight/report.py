"""What a preflight found. Owns the shape only; each sentence says what is wrong and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.core.spec import PartitionSpec
from app.core.types import ServerFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """How long the first prompts of a partition are: characters of texts, tokens of the server."""

    n_prompts: int
    characters: int
    tokens: int


@dataclass(slots=True)
class Findings:
    """Filled by the checks, in their order."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    sampled: dict[str, Sampled] = field(default_factory=dict)
    golden: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`errors` stop a start. `facts` are by server address; partitions have their limits.

    `sampled` holds the partitions whose first prompts a server has tokenized. `golden` is the mark
    of the servers' tokenizer (`core/golden.py`), None if none of them can encode a text.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    notices: tuple[str, ...]
    facts: Mapping[str, ServerFacts]
    prompts: Mapping[str, Path]
    partitions: Mapping[str, PartitionSpec]
    sampled: Mapping[str, Sampled] = field(default_factory=dict)
    golden: Mapping[str, object] | None = None
