"""What the GET routes of samples answer, for OpenAPI. Shapes only, like `schemas_reading.py`."""

from typing import Any

from pydantic import AwareDatetime

from app.api.schemas_reading import Answer
from app.core.states import SampleState


class SampleAnswer(Answer):
    """A sample; `output_tokens` are those of its valid line, `held_tokens` of its checkpoint.

    `attempt` counts its requests, `charged` those that were its own fault.
    """

    id: int
    partition: str
    key: str
    position: int
    index: int
    replica: int
    turn: int
    state: SampleState
    prompt_tokens: int | None
    output_tokens: int
    held_tokens: int
    attempt: int
    charged: int
    finish_reason: str | None
    flags: list[str]
    reason: str | None


class SamplesAnswer(Answer):
    """A page in input order. Give `next_after` as `after` for the next one; null ends the list.

    Each request looks at a bounded number of rows. So with a state asked for a page may be short
    or empty and still have a `next_after`.
    """

    partition: str
    samples: list[SampleAnswer]
    next_after: int | None


class AttemptAnswer(Answer):
    """An attempt that kept nothing, or was put back through somebody's fault."""

    attempt: int
    at: AwareDatetime
    is_charged: bool
    tokens: int
    reason: str


class OneSampleAnswer(SampleAnswer):
    """A sample with its history. `answer` is its line, as it stands in the output folder.

    `answer_missing_because` says why there is none; it is null where there is one.
    """

    prompt_sha256: str
    max_new_tokens: int
    checkpoints: int
    checkpoint_tokens: int
    attempts: list[AttemptAnswer]
    answer: dict[str, Any] | None
    answer_missing_because: str | None
