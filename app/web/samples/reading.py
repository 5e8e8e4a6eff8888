"""What the pages of samples read: a page of the list, one sample's prompt, ids and answer.

Owns how much is read for a page. Invariants: each statement and each file read is bounded; files
are named by the ledger alone, never by an address (sec-05).
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.api.looking_at_samples import answered
from app.core.reasoning import Reasoning, divide, marks_of, prompt_opens
from app.core.spec import from_json
from app.core.types import RunId, SampleId
from app.core.views import PartitionView, RunView
from app.errors import StorageError
from app.files.prompt_lookup import prompt_at, prompt_ids_at
from app.files.prompt_records import Prompt
from app.files.tokens import token_path
from app.ledger import runs
from app.ledger.browsing import SampleEntry, sample_page
from app.ledger.db import Ledger
from app.ledger.one_sample import SampleWhole
from app.ledger.searching import neighbours
from app.web.kinds import Desk
from app.web.samples.asked import Asked

N_SHOWN = 50
MOST_IDS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A page of the list. `next` goes on behind it, None at the end.

    `looked_in` is where looking ended before the page was full, "" where it did not.
    """

    samples: tuple[SampleEntry, ...]
    next: Asked | None = None
    looked_in: str = ""
    has_more_hits: bool = False


def read_page(ledger: Ledger, partitions: Sequence[PartitionView], asked: Asked) -> Found:
    """Return samples in input order, partition by partition, from where it was asked for."""
    names = [each.name for each in partitions]
    begin = names.index(asked.begin) if asked.begin in names else 0
    rows: list[SampleEntry] = []
    after = asked.after
    for place, partition in enumerate(partitions[begin:], start=begin):
        page = sample_page(ledger, partition, asked.of_state, after, N_SHOWN - len(rows))
        rows += page.samples
        if page.next_after is not None:
            looked_in = partition.name if len(rows) < N_SHOWN else ""
            on = asked.behind(partition.name, page.next_after)
            return Found(samples=tuple(rows), next=on, looked_in=looked_in)
        after = -1
        if len(rows) >= N_SHOWN and place + 1 < len(partitions):
            on = asked.behind(names[place + 1], -1)
            return Found(samples=tuple(rows), next=on)
    return Found(samples=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One sample with all that can be shown of it; each `no_…` says why something cannot.

    `reasoning` is told by the answer's and the prompt's ids; None: by these it cannot be told.
    """

    whole: SampleWhole
    partition: PartitionView
    before: SampleId | None
    behind: SampleId | None
    prompt: Prompt | None
    no_prompt: str
    ids: "array[int] | None"
    no_ids: str
    answer: dict[str, Any] | None
    no_answer: str
    reasoning: Reasoning | None = None


def read_sample(desk: Desk, run: RunView, sample_id: SampleId) -> Opened:
    """Return a sample of a run; NotFoundError if it has none of that id."""
    whole, answer, missing = answered(desk.ledger, run, sample_id)
    no_answer = f"{missing[0].upper()}{missing[1:]}." if missing else ""
    entry = whole.entry
    partition = runs.get_partition(desk.ledger, entry.partition_id)
    before, behind = neighbours(desk.ledger, partition.id, entry.position)
    prompt, no_prompt = _prompt(partition, whole)
    ids, no_ids = _ids(desk, run.id, partition, whole)
    return Opened(
        whole=whole,
        partition=partition,
        before=before,
        behind=behind,
        prompt=prompt,
        no_prompt=no_prompt,
        ids=ids,
        no_ids=no_ids,
        answer=answer,
        no_answer=no_answer,
        reasoning=_reasoning(desk, run, partition, whole, answer),
    )


def _prompt(partition: PartitionView, whole: SampleWhole) -> tuple[Prompt | None, str]:
    if whole.entry.turn > 1:
        return None, "It asks the next turn behind the answers to the ones before; see its ids."
    if not whole.prompt_sha256:
        return None, "The record was rejected when it was read; nothing of it is kept."
    try:
        path = Path(partition.prompts_path)
        return prompt_at(path, whole.entry.index, whole.prompt_sha256), ""
    except StorageError as error:
        return None, f"{error.message}."


def _ids(
    desk: Desk, run_id: RunId, partition: PartitionView, whole: SampleWhole
) -> tuple["array[int] | None", str]:
    n = whole.entry.prompt_tokens
    if whole.token_offset is None or not n:
        return None, "It has no token ids; it was not tokenized."
    try:
        path = token_path(desk.ledger.path.parent, run_id, partition.name)
        return prompt_ids_at(path, whole.token_offset, min(n, MOST_IDS)), ""
    except StorageError as error:
        return None, f"The ids cannot be shown: {error.message}."


def _reasoning(
    desk: Desk,
    run: RunView,
    partition: PartitionView,
    whole: SampleWhole,
    answer: dict[str, Any] | None,
) -> Reasoning | None:
    """Return how the answer is divided. Lines of earlier versions have the same ids."""
    ids, told = (answer or {}).get("output_ids"), (answer or {}).get("reasoning_end")
    spec = from_json(run.spec_json)
    marks = marks_of(spec.think_open_ids, spec.think_close_ids)
    if not isinstance(ids, list):
        return None
    if type(told) is int and 0 <= told < len(ids):
        return Reasoning(is_thinking=True, end=told, resume=told + 1)
    if not marks.opening or not marks.closing:
        return None
    prompt = _whole_prompt(desk, run, partition, whole)
    is_opened = prompt is not None and prompt_opens(prompt, marks)
    divided = divide(ids, marks, opened_by_prompt=is_opened)
    return None if prompt is None and not divided.is_thinking else divided


def _whole_prompt(
    desk: Desk, run: RunView, partition: PartitionView, whole: SampleWhole
) -> "array[int] | None":
    n_tokens = whole.entry.prompt_tokens
    if whole.token_offset is None or not n_tokens:
        return None
    try:
        path = token_path(desk.ledger.path.parent, run.id, partition.name)
        return prompt_ids_at(path, whole.token_offset, n_tokens)
    except StorageError:
        return None
