"""Compares the lines that stand in an answer file with what the ledger says of their samples.

Pure: facts in, repairs out, linear. Used where a file is not what the ledger last saw (killed
between the line and the settle, a torn tail, edited by hand). Invariant of the repairs: after
them each kept sample points to exactly one line, and no line is pointed to twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.core.states import KEPT, OPEN, SampleState
from app.core.types import SampleId


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFact:
    """One whole line of the file. `attempt` orders two lines of one sample."""

    offset: int
    n_bytes: int
    sample_id: SampleId
    attempt: int
    prompt_sha256: str
    gen_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFact:
    """What the ledger says. `points_here`: its valid line is in this file."""

    sample_id: SampleId
    state: SampleState
    prompt_sha256: str
    points_here: bool
    points_elsewhere: bool


@dataclass(slots=True)
class Repairs:
    """What to do: lines that stay, lines that become a sample's answer, samples without a line."""

    keep: list[LineFact] = field(default_factory=list)
    adopt: list[LineFact] = field(default_factory=list)
    lose: list[SampleId] = field(default_factory=list)
    n_dropped_lines: int = 0

    @property
    def is_clean(self) -> bool:
        return not (self.adopt or self.lose or self.n_dropped_lines)

    def in_words(self) -> str:
        return (
            f"{len(self.keep)} lines as recorded, {len(self.adopt)} adopted,"
            f" {len(self.lose)} samples put back because their line is gone,"
            f" {self.n_dropped_lines} lines dropped (doubled, foreign or superseded)"
        )


def reconcile(
    lines: Iterable[LineFact], samples: Mapping[SampleId, SampleFact], known_gen_ids: frozenset[str]
) -> Repairs:
    """Return the repairs that make file and ledger agree."""
    repairs = Repairs()
    chosen: dict[SampleId, LineFact] = {}
    for line in lines:
        sample = samples.get(line.sample_id)
        if sample is None or not _may_stand(line, sample, known_gen_ids):
            repairs.n_dropped_lines += 1
            continue
        rival = chosen.get(line.sample_id)
        if rival is None or line.attempt > rival.attempt:
            chosen[line.sample_id] = line
        if rival is not None:
            repairs.n_dropped_lines += 1
    for line in sorted(chosen.values(), key=lambda each: each.offset):
        here = samples[line.sample_id].points_here
        (repairs.keep if here else repairs.adopt).append(line)
    repairs.lose = [
        sample.sample_id
        for sample in samples.values()
        if sample.points_here and sample.sample_id not in chosen
    ]
    return repairs


def _may_stand(line: LineFact, sample: SampleFact, known_gen_ids: frozenset[str]) -> bool:
    """Return whether the line answers this prompt under known settings, and is the newest."""
    if line.prompt_sha256 != sample.prompt_sha256 or sample.points_elsewhere:
        return False
    if sample.points_here:
        return True
    return sample.state in OPEN | KEPT and line.gen_id in known_gen_ids
