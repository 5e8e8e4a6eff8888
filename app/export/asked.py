"""The messages of a partition's prompts, beside its samples in input order.

Owns the walk through the prompt file: forward only, once, as the samples come. Invariant: what is
given is the prompt that the ledger knows, by its digest; else nothing is given.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from app.files.prompt_records import Prompt, Rejected
from app.files.prompts import scan
from app.sources.contract import Message


class Asked:
    """Reads as far as it is asked for; samples are asked for in the order of their records."""

    def __init__(self, path: Path) -> None:
        self._records: Iterator[Prompt | Rejected] = scan(path)
        self._at: Prompt | Rejected | None = None

    def messages(self, index: int, prompt_sha256: str) -> Sequence[Message] | None:
        """Return the messages of that record, None where it has none or is another by now."""
        while self._at is None or self._at.index < index:
            self._at = next(self._records, None)
            if self._at is None:
                return None
        found = self._at
        is_it = isinstance(found, Prompt) and found.index == index
        if not is_it or not isinstance(found, Prompt) or found.prompt_sha256 != prompt_sha256:
            return None
        return found.messages
