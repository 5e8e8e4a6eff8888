"""Bodies of the API: strict, without unknown keys, quantities with their units in the names."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_TOKENS = 2**53


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Submission(Body):
    """A run as the spec's own JSON form (`app.core.spec.to_json`), paths absolute."""

    spec: dict[str, Any]
    accept_changes: bool = False


class PauseOrder(Body):
    """No partitions: the run as a whole."""

    partitions: tuple[str, ...] = ()


class DrainOrder(Body):
    """No partitions: every active one."""

    partitions: tuple[str, ...] = ()


class ResumeOrder(Body):
    """No partitions: the run, and its partitions if none would go on."""

    partitions: tuple[str, ...] = ()


class StopOrder(Body):
    pass


class RetryOrder(Body):
    partition: str | None = None
    reason: str | None = None
    states: tuple[Literal["failed", "empty", "suspect"], ...] = ("failed",)


class BudgetOrder(Body):
    """No partition: the run's budget. null tokens: no budget."""

    partition: str | None = None
    tokens: int | None = Field(ge=1, lt=MAX_TOKENS, strict=True)


class ConcurrencyOrder(Body):
    """null requests: the partition's share of its class again."""

    partition: str
    requests: int | None = Field(ge=1, le=10_000, strict=True)


class GoalOrder(Body):
    """null samples: as many as there are prompts."""

    partition: str
    samples: int | None = Field(ge=1, lt=MAX_TOKENS, strict=True)


RunOrder = (
    PauseOrder
    | DrainOrder
    | ResumeOrder
    | StopOrder
    | RetryOrder
    | BudgetOrder
    | ConcurrencyOrder
    | GoalOrder
)


class ChangeAnswer(Body):
    target: str
    what: str
    old: str
    new: str


class OrderAnswer(Body):
    """What an order changed; `sentence` says it for people."""

    run: int
    changes: tuple[ChangeAnswer, ...]
    sentence: str


class SubmissionAnswer(Body):
    """The run that now stands in the ledger, and what the check had to say."""

    id: int
    name: str
    state: str
    messages: tuple[str, ...]


class ErrorText(Body):
    code: str
    message: str
    hint: str


class ErrorAnswer(Body):
    error: ErrorText
