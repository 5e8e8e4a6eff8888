"""Taking records out of a draft: what sampling leaves out, what another partition has already.

Owns the second pass over a draft's files. Invariants: the order of rows stays, in both files; a
record that goes becomes a line of `skipped.jsonl`; counts are made anew from what is left.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from app.sources.contract import SkipReason
from app.sources.tally import Tally, example_of
from app.sources.writing import KEPT, SKIPPED, Skip, drafting

_THINNED = "thinned"


class Goes(NamedTuple):
    """Why a record goes."""

    reason: SkipReason
    detail: str = ""
    of: str | None = None


def thin(draft: Path, records: str, verdicts: Iterable[Goes | None], tally: Tally) -> Tally:
    """Take the records out that have a verdict; return the counts of what is left.

    `verdicts` has one for each record, in order; `tally` are the counts so far.
    """
    left = Tally(skipped=dict(tally.skipped), other_recipes=dict(tally.other_recipes))
    beside = draft / _THINNED
    with (
        (draft / records).open("rb") as lines,
        (draft / KEPT).open("rb") as places,
        (draft / SKIPPED).open("rb") as skipped,
        drafting(beside, records) as new,
    ):
        older = _SkippedLines(skipped)
        for line, place_line, verdict in zip(lines, places, verdicts, strict=True):
            place = orjson.loads(place_line)
            if verdict is None:
                new.records.write(line)
                new.kept.write(place_line)
                left.keep(place["characters"], place.get("flags", ()))
                if left.wants_example():
                    left.show(*example_of(orjson.loads(line)))
            else:
                older.copy_before(place["row"], new.skipped)
                new.skip(Skip(place["row"], place["file"], place["line"], *verdict))
                left.skip(verdict.reason)
        older.copy_before(None, new.skipped)
    for name in (records, KEPT, SKIPPED):
        (beside / name).replace(draft / name)
    shutil.rmtree(beside)
    return left


class _SkippedLines:
    """The lines of rows that were skipped before, by rising row."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._line = file.readline()

    def copy_before(self, row: int | None, target: BinaryIO) -> None:
        """Copy the lines of rows before that one, or all that are left."""
        while self._line and (row is None or orjson.loads(self._line)["row"] < row):
            target.write(self._line)
            self._line = self._file.readline()
