"""The samples of one partition of a run, in input order: each as an example, or why it is none.

Owns the reading of ledger, token file and answers together, and what must agree between them.
Changes nothing; works beside a living service, whose seals may replace files between two reads.

Raises StorageError, with file and place, for a line that is not the sample's own answer.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from app.core.reasoning import NO_REASONING, Reasoning, ReasoningMarks, divide, prompt_opens
from app.core.states import SampleState
from app.core.views import PartitionView
from app.errors import StorageError
from app.export.asked import Asked
from app.export.choosing import Choice, Drop, finish_of
from app.export.records import Example
from app.files.sealed import LineSource
from app.files.tokens import TokenFile
from app.ledger.db import Ledger
from app.ledger.merging import SamplePlaces, places

_PAGE = 2_000
_TRIES = 5
_HINT = "start the run again: it looks for what is damaged and makes it anew"


class Row(NamedTuple):
    """A sample at its position: an example, or why it is none."""

    position: int
    found: Example | Drop


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One partition of a run and what a record says of it."""

    partition: PartitionView
    token_path: Path
    source: str  # hub id and revision, or "" where nobody knows
    marks: ReasoningMarks
    with_messages: bool = False  # of the prompts, for conversations


def rows_of(ledger: Ledger, source: Source, choice: Choice, after: int) -> Iterator[Row]:
    """Yield every sample behind a position."""
    tries, tokens = 0, TokenFile(source.token_path)
    asked = Asked(Path(source.partition.prompts_path)) if source.with_messages else None
    try:
        with LineSource() as lines:
            while page := places(ledger, source.partition.id, after, _PAGE):
                for place in page:
                    try:
                        found = _found(place, source, choice, tokens, lines)
                    except StorageError:
                        # the partition may just have been sealed: then the page is an old one
                        tries += 1
                        lines.close()
                        if tries >= _TRIES:
                            raise
                        break
                    if asked is not None and isinstance(found, Example):
                        before = asked.messages(place.index, place.prompt_sha256)
                        found = replace(found, before=before)
                    yield Row(place.position, found)
                    after, tries = place.position, 0
    finally:
        tokens.close()


def _found(
    place: SamplePlaces, source: Source, choice: Choice, tokens: TokenFile, lines: LineSource
) -> Example | Drop:
    if place.path is None:
        return _without_answer(place.state)
    path = Path(place.path)
    line = lines.read(path, place.offset, place.n_bytes)
    where = f"{path}, byte {place.offset:,}"
    fields, answer = _answer(line, place, where)
    finish = finish_of(fields["finish_reason"])
    if finish is None:
        return Drop.FINISH
    kind, stop_id, stop_text = finish
    flags = tuple(fields["flags"])
    dropped = choice.drop(
        status=fields["status"],
        finish=kind,
        flags=flags,
        prompt=place.prompt_tokens or 0,
        output=len(answer),
    )
    if dropped is not None:
        return dropped
    prompt = tokens.read(place.prompt_offset or 0, place.prompt_tokens or 0)
    metadata: dict[str, Any] = {
        "run": source.partition.run_id,
        "index": place.index,
        "replica": place.replica,
        "attempts": fields["attempts"],
        "segments": len(fields["segments"]),
        "max_new_tokens": fields["max_new_tokens"],
        "rid": fields["rid"],
    }
    if stop_text is not None:
        metadata["stop_text"] = stop_text
    return Example(
        partition=source.partition.name,
        key=place.key if not place.replica else f"{place.key}~{place.replica}",
        native=place.key.partition("#turn")[0],
        source=source.source,
        prompt=prompt,
        answer=answer,
        finish=kind,
        stop_id=stop_id,
        is_regenerated=True,
        reasoning=_divided(prompt, answer, source.marks),
        prompt_sha256=place.prompt_sha256,
        flags=flags,
        gen_id=fields["gen_id"],
        metadata=metadata,
        text=fields["text"],
    )


def _without_answer(state: SampleState) -> Drop:
    """Return the reason of a sample without a line: its state, for a kept one that has none yet."""
    return Drop(state.value) if state.value in set(Drop) else Drop.NO_ANSWER


def _answer(line: bytes, place: SamplePlaces, where: str) -> tuple[dict[str, Any], list[int]]:
    """Return a line's fields and ids; StorageError if it is not this sample's answer."""
    try:
        fields = orjson.loads(line)
        answer, n = fields["output_ids"], fields["completion_tokens"]
        told = (fields["id"], fields.get("replica", 0), fields["prompt_sha256"])
        _ = fields["status"], fields["finish_reason"], fields["flags"], fields["segments"]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{where}: this is no answer of ours", hint=_HINT) from error
    if told != (place.key, place.replica, place.prompt_sha256):
        raise StorageError(
            f'{where}: this is the answer of "{told[0]}", not of "{place.key}"', hint=_HINT
        )
    if not isinstance(answer, list) or len(answer) != n:
        raise StorageError(
            f'{where}: the answer of "{place.key}" has not the {n} token ids that it tells',
            hint=_HINT,
        )
    return fields, answer


def _divided(prompt: array[int], answer: list[int], marks: ReasoningMarks) -> Reasoning:
    if not marks.closing:
        return NO_REASONING
    return divide(answer, marks, opened_by_prompt=prompt_opens(prompt, marks))
