"""What a recipe is: one row of a dataset in, a conversation or the reason against it out.

Owns the shapes that recipes and the pipeline share. Opens nothing.

A recipe only reads: it turns its source's columns into messages in the field's usual shape
(`role`, `content`, `tool_calls`, `tool_call_id`, `reasoning_content`). What holds for every source
(blank turns, neighbours of one role, where a conversation is cut, control tokens, lengths,
duplicates, sampling) is done behind it, once, in `conversations` and the pipeline.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Row = Mapping[str, object]
Message = dict[str, object]


class Mode(StrEnum):
    """Which turns of a conversation become requests."""

    LAST_USER = "last_user"  # the source's earlier answers stay as context; one request a row
    FIRST_USER = "first_user"  # everything behind the first user turn is dropped
    ALL_TURNS = "all_turns"  # each user turn is answered in turn, on the generated history


class Gives(StrEnum):
    """What a recipe's rows are good for."""

    PROMPTS = "prompts"  # `prompts.jsonl`: to be answered by the target model
    ANSWERS = "answers"  # `answers.jsonl`: answered already; only `longwatch merge` reads it


class SkipReason(StrEnum):
    """Why a row becomes no record; the words stand in `skipped.jsonl` and in the report."""

    EMPTY_PROMPT = "empty_prompt"
    NO_USER_TURN = "no_user_turn"
    BAD_SCHEMA = "bad_schema"
    CONTROL_TOKEN = "control_token"  # noqa: S105 - a reason, no secret
    DUPLICATE = "duplicate"
    DUPLICATE_ELSEWHERE = "duplicate_elsewhere"  # of an earlier partition, where that was asked
    EMPTY_RESPONSE = "empty_response"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    NOT_SAMPLED = "not_sampled"
    UNREADABLE = "unreadable"  # the line or row itself, before any recipe saw it


class SkippedError(Exception):
    """Why this row is skipped. `detail` names column or turn and what it holds, never content."""

    def __init__(self, reason: SkipReason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


class Conversation(NamedTuple):
    """What one row says. `messages` are as the source has them, in order, not yet cut.

    They are the caller's: it may change them, so a recipe never hands out an object of its row.
    """

    messages: list[Message]
    tools: list[object] | None = None
    native_id: str | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the rows of one source shape are read.

    A row is recognised by `columns`: it must have all of them; of several recipes that fit, the
    one that names most wins. Where columns say too little, `fits` is asked of the first row too.
    `read` raises SkippedError. `is_one_per_id` keeps the first row of each native id.
    """

    name: str
    about: str
    columns: frozenset[str]
    read: Callable[[Row], Conversation]
    gives: Gives = Gives.PROMPTS
    mode: Mode = Mode.LAST_USER
    is_one_per_id: bool = False
    fits: Callable[[Row], bool] | None = None
