"""Turns behind the first of their conversation: asked once the one before has its answer.

Owns what happens to a turn that waits: its messages are the record's and the kept answers to all
turns before, or it is rejected with the rest of its conversation, because there is no such answer.
Invariant: a turn is prompted with exactly the answers that are in the output.
"""

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.rids import parse_rid
from app.core.turns import asked_with, why_not_asked
from app.core.types import PartitionId
from app.errors import StorageError
from app.files.kept_answers import KeptAnswer, read_kept
from app.files.prompt_lookup import prompt_ids_at
from app.files.prompt_records import Prompt, asking
from app.files.sealed import LineSource
from app.files.turn_records import TurnRecords
from app.ledger import turns
from app.ledger.db import Ledger
from app.ledger.turns import Due, Earlier, Rest
from app.tokenizing.records import Group
from app.tokenizing.saying import Sayings

AT_ONCE = 64
_ASKED_AT_ONCE = 8

# An answer and the ids of the prompt that it answers.
_Answered = tuple[KeptAnswer, "array[int]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A turn that waits, its record and the answers to the turns before it."""

    due: Due
    record: Prompt
    answers: Sequence[_Answered]


class LaterTurns:
    """The later turns of one partition; `reject` and `read` are for a thread."""

    def __init__(
        self,
        ledger: Ledger,
        partition_id: PartitionId,
        token_path: Path,
        records: TurnRecords,
        sayings: Sayings,
    ) -> None:
        self._ledger = ledger
        self._partition_id = partition_id
        self._token_path = token_path
        self._records = records
        self._sayings = sayings

    def is_waited_for(self) -> bool:
        return self._partition_id in turns.waited_for(self._ledger)

    def reject(self) -> tuple[int, list[Due]]:
        """Reject what stands behind turns without a whole answer.

        Returns how many were, and the turns that can be asked now, some at a time.
        """
        found = turns.due(self._ledger, self._partition_id, AT_ONCE)
        whys = [(one, why_not_asked(one.turn, one.state, one.reason, one.flags)) for one in found]
        rests = [
            Rest(parent_id=one.parent_id, state=one.state, reason=why) for one, why in whys if why
        ]
        n = turns.reject_rest(self._ledger, self._partition_id, rests) if rests else 0
        return n, [one for one, why in whys if not why]

    def read(self, dues: Sequence[Due]) -> list[_Read]:
        """Read records and answers; StorageError if no line of any of them can be read."""
        read: list[_Read] = []
        trouble: StorageError | None = None
        with LineSource() as source:
            for due in dues:
                try:
                    answers = [self._answered(source, each) for each in self._earlier(due)]
                except StorageError as error:
                    trouble = error  # perhaps a seal has just moved it
                    continue
                record = self._records.at(due.next.record_index)
                read.append(_Read(due=due, record=record, answers=answers))
        if trouble is not None and not read:
            raise trouble
        return read

    def _earlier(self, due: Due) -> list[Earlier]:
        found = turns.earlier(self._ledger, self._partition_id, due)
        if [each.turn for each in found] != list(range(1, due.turn + 1)):
            raise StorageError(f"turns before sample {due.next.sample_id} have no valid line")
        return found

    def _answered(self, source: LineSource, one: Earlier) -> _Answered:
        place = one.place
        answer = read_kept(source.read(Path(place.path), place.offset, place.n_bytes))
        rid = parse_rid(answer.rid) if answer is not None else None
        if (
            answer is None
            or rid is None
            or rid.sample_id != place.sample_id
            or answer.prompt_sha256 != one.prompt_sha256
            or len(answer.output_ids) != one.output_tokens
        ):
            raise StorageError(f"{place.path}: at {place.offset} is not the line of this sample")
        return answer, prompt_ids_at(self._token_path, one.token_offset, one.prompt_tokens)

    async def groups(self, read: Sequence[_Read]) -> list[Group]:
        """Return the prompts of turns that can be asked, with the samples that ask them."""
        slots = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def one(each: _Read) -> Group:
            async with slots:
                said = [await self._sayings.message(*answered) for answered in each.answers]
            record = each.record
            messages = asked_with(record.messages or [], record.later, said)
            return Group(prompt=asking(record, messages), samples=[each.due.next])

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(each)) for each in read]
        return [task.result() for task in tasks]
