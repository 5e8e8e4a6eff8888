"""Records that an earlier partition has already, in the order of the spec.

Owns the pass behind all sources, over their drafts: it needs the others' content, so it cannot be
done while they are read. Invariants: of the same content the first partition's record stays; what
goes is `duplicate_elsewhere`, with the record that it repeats.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from app.sources.choosing import FirstSeen
from app.sources.contract import SkipReason
from app.sources.preparing import Job, Prepared
from app.sources.publishing import records_file
from app.sources.thinning import Goes, thin
from app.sources.writing import KEPT

_NONE = 2**32 - 1
_HALF = 2**63  # 64 bits, signed as a key is


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A partition that was looked at: its records are numbered from `start`, over all of them."""

    name: str
    records: Path
    start: int


def deduplicate(drafts: Sequence[tuple[Job, Prepared]]) -> list[Prepared]:
    """Take out of each draft what an earlier one has; return what is then prepared."""
    seen, earlier, left = FirstSeen(), list[_Earlier](), list[Prepared]()
    n_records = 0
    for job, prepared in drafts:
        name, kept = records_file(prepared.gives), job.draft / KEPT
        repeated = array("I", (_number(seen.get(key)) for key in _keys(kept)))
        tally = prepared.tally
        if any(number != _NONE for number in repeated):
            tally = thin(job.draft, name, _verdicts(repeated, earlier), tally)
        for number, key in enumerate(_keys(kept), start=n_records):
            seen.first(key, number)
        earlier.append(_Earlier(job.source.name, job.draft / name, n_records))
        n_records += tally.n_kept
        left.append(replace(prepared, tally=tally))
    return left


def _number(found: int | None) -> int:
    return _NONE if found is None else found


def _keys(kept: Path) -> Iterator[int]:
    with kept.open("rb") as lines:
        for line in lines:
            yield int(orjson.loads(line)["sha256"], 16) - _HALF


def _verdicts(repeated: "array[int]", earlier: Sequence[_Earlier]) -> Iterator[Goes | None]:
    names = _names({number for number in repeated if number != _NONE}, earlier)
    for number in repeated:
        if number == _NONE:
            yield None
        else:
            of = names[number]
            yield Goes(SkipReason.DUPLICATE_ELSEWHERE, "the same messages and tools", of)


def _names(wanted: set[int], earlier: Sequence[_Earlier]) -> dict[int, str]:
    """Return `partition/id` of each wanted record."""
    names = {}
    for partition in earlier:
        with partition.records.open("rb") as lines:
            for number, line in enumerate(lines, start=partition.start):
                if number in wanted:
                    names[number] = f"{partition.name}/{orjson.loads(line)['id']}"
    return names
