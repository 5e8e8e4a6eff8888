"""The prompt file read once more, for the records whose ids are still missing.

Owns finding a record by its number and the proof that it is the one that was scanned. Invariant:
a file that changed since the scan is an `InputError`, never another prompt under an old number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from app.errors import InputError
from app.files.prompts import Prompt, scan
from app.ledger.intake_rows import Untokenized
from app.prompt_tokens import content_characters

MAX_CHARACTERS = 16_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One record and those of its samples that need its ids."""

    prompt: Prompt
    samples: Sequence[Untokenized]


class RecordReader:
    """Goes through a prompt file from its beginning, forward only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._records = scan(path)

    def take(self, page: Sequence[Untokenized], *, is_last: bool) -> list[Group]:
        """Return the page's records with their samples, as many as fit into memory at once.

        Unless the page is the last one, its last record may have more samples and is left out.
        """
        by_record = [list(samples) for _, samples in groupby(page, lambda one: one.record_index)]
        if not is_last:
            by_record.pop()
        groups: list[Group] = []
        n_characters = 0
        for samples in by_record:
            prompt = self._forward_to(samples[0])
            groups.append(Group(prompt=prompt, samples=samples))
            n_characters += content_characters(prompt)
            if n_characters >= MAX_CHARACTERS:
                break
        return groups

    def _forward_to(self, sample: Untokenized) -> Prompt:
        wanted = sample.record_index
        record = next((one for one in self._records if one.index >= wanted), None)
        if (
            not isinstance(record, Prompt)
            or record.index != wanted
            or record.prompt_sha256 != sample.prompt_sha256
        ):
            place = f" (line {record.line})" if record is not None else ""
            raise InputError(
                f"{self._path} is not what was scanned: record {wanted + 1}{place} has changed",
                hint="put the file back as it was, then resume the partition",
            )
        return record
