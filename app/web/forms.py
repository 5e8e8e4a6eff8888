"""Posted forms as they are read: their fields, and which run and partition an address names."""

from urllib.parse import parse_qs

from app.controls import find_run
from app.core.numbers import typed_whole
from app.core.types import PartitionId
from app.core.views import RunView
from app.errors import InputError, NotFoundError
from app.ledger import runs
from app.ledger.db import Ledger

_SHOWN_CHARS = 40


class Form:
    """The fields of a posted form; the last value of each name counts."""

    def __init__(self, body: bytes) -> None:
        try:
            self._fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=50)
        except (UnicodeDecodeError, ValueError) as error:
            raise InputError("the form cannot be read", hint="reload the page") from error

    def get(self, name: str) -> str | None:
        values = self._fields.get(name)
        return values[-1].strip() if values else None

    def whole(self, name: str) -> int | None:
        """Return a whole number, None for an absent or empty field."""
        given = self.get(name)
        if not given:
            return None
        n = typed_whole(given)
        if n is None:
            raise InputError(
                f'{name} "{given[:_SHOWN_CHARS]}" is not a whole number',
                hint="write for example 64",
            )
        return n


def named(ledger: Ledger, run: str, partition_id: int) -> tuple[RunView, str]:
    """Return the run, and the name of the partition that must be one of its own."""
    found = find_run(ledger, run)
    partition = runs.get_partition(ledger, PartitionId(partition_id))
    if partition.run_id != found.id:
        raise NotFoundError(f"run {found.id} has no partition {partition_id}")
    return found, partition.name
