"""Bodies of the API: strict, without unknown keys, quantities with their units in the names."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MAX_TOKENS = 2**53
MAX_REASON = 200


_Whole = Annotated[int, Field(ge=1, lt=MAX_TOKENS, strict=True)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _whole_letters(cls, given: object) -> object:
        """Refuse half a letter (a lone surrogate): no file and no ledger can hold it."""
        if (bad := _half_letter(given)) is not None:
            raise ValueError(f"{bad!a} holds half a letter; write whole ones, as UTF-8")
        return given


def _half_letter(given: object) -> str | None:
    """Return the first text in a value of JSON, or key of it, that cannot be written."""
    left = [given]
    while left:
        value = left.pop()
        if isinstance(value, str):
            if any("\ud800" <= letter <= "\udfff" for letter in value):
                return value[:40]
        elif isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            left += value
    return None


class Submission(Body):
    """A run as the spec's own JSON form (`app.core.spec.to_json`), paths absolute."""

    spec: dict[str, Any]
    accept_changes: bool = False


class Addition(Body):
    """A spec in its own JSON form, of whose partitions the run gets those that it lacks."""

    spec: dict[str, Any]


class PauseOrder(Body):
    """No partitions: the run as a whole."""

    partitions: tuple[str, ...] = ()


class DrainOrder(Body):
    """No partitions: every active one."""

    partitions: tuple[str, ...] = ()


class RestartOrder(Body):
    """Take back what is in flight, save it, and send it anew: for requests that stand still."""

    partitions: tuple[str, ...] = Field(min_length=1)


class ResumeOrder(Body):
    """No partitions: the run, and its partitions if none would go on.

    `also_paused`: the partitions too that somebody has paused one by one.
    """

    partitions: tuple[str, ...] = ()
    also_paused: bool = False


class StopOrder(Body):
    """End the run; resume goes on with it. `finish`: let what runs end first, else it is saved.

    `reason`: why, in one's own words; it stands with the run until that goes on.
    """

    finish: bool = False
    reason: str = Field(default="", max_length=MAX_REASON)


class RetryOrder(Body):
    """No partition: all of them. With a reason: only samples whose reason contains it."""

    partition: str | None = None
    reason: str | None = None
    states: tuple[Literal["failed", "empty", "suspect"], ...] = ("failed",)


class ExtendOrder(Body):
    """Raise max_new_tokens of a partition; its truncated answers go on from where they stopped.

    With a reason: only answers whose flags or reason contain it. The limit that the partition has
    already is taken as long as an answer waits for it: an order that was cut off is given again.
    """

    max_new_tokens: int = Field(ge=1, lt=MAX_TOKENS, strict=True)
    reason: str | None = None


class BudgetOrder(Body):
    """No partition: the run's budget. null tokens: no budget.

    `expect`: refused (409) where the budget is not this now, "none" for that there is none.
    """

    partition: str | None = None
    tokens: int | None = Field(ge=1, lt=MAX_TOKENS, strict=True)
    expect: Literal["none"] | _Whole | None = None


class ConcurrencyOrder(Body):
    """null requests: the partition's share of its class again.

    `expect`: refused (409) where it is not this now, "share" for the share of the class.
    """

    partition: str
    requests: int | None = Field(ge=1, le=10_000, strict=True)
    expect: Literal["share"] | _Whole | None = None


class GoalOrder(Body):
    """null samples: as many as there are prompts.

    `expect`: refused (409) where the goal is not this now, "none" for that there is none.
    """

    partition: str
    samples: int | None = Field(ge=1, lt=MAX_TOKENS, strict=True)
    expect: Literal["none"] | _Whole | None = None


class DeadlineOrder(Body):
    """No partition: the run stops then; else the partition pauses. null: no deadline.

    A time of day ("08:00") is the next such moment in the machine's zone; also a date with it, with
    or without an offset, or a span from now ("+6h").
    `expect`: refused (409) where it is not this moment now, "none" for that there is none.
    """

    partition: str | None = None
    deadline: str | None = Field(max_length=60)
    expect: str | None = Field(default=None, max_length=60)


RunOrder = (
    PauseOrder
    | DrainOrder
    | RestartOrder
    | ResumeOrder
    | StopOrder
    | RetryOrder
    | BudgetOrder
    | ConcurrencyOrder
    | GoalOrder
    | DeadlineOrder
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


class AdditionAnswer(Body):
    """The run as it is now, which partitions are new in it, and what there was to say."""

    run: int
    name: str
    state: str
    added: tuple[str, ...]
    messages: tuple[str, ...]


class ErrorText(Body):
    code: str
    message: str
    hint: str


class ErrorAnswer(Body):
    error: ErrorText
