"""What each line of an earlier script's file is to the run: an answer that may be taken, or left.

Owns the one pass that both the check and the taking make: lines in batches, their samples looked up
by id or by record number, a verdict for each. Of several lines of one sample the last that has an
answer counts. Memory is bounded by a batch, and a number for each sample that is found. Changes
nothing.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.adopting.finding import Source
from app.core.adopting import Judging, Left, Sought, verdict, why_left
from app.core.spec import RunSpec, from_json
from app.core.types import Keep, SampleId, ServerFacts
from app.core.views import RunView
from app.files.earlier_lines import Earlier, Fields, Read, Skipped, earlier_lines
from app.ledger import adopting
from app.ledger.db import Ledger
from app.ledger.servers import servers
from app.prompt_tokens import vocabulary_size

_BATCH_LINES = 200
MOST_SHOWN = 3

Progress = Callable[[Source, int, int], None]
"""Told (source, bytes read, lines read) now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How the lines of one order are read and judged."""

    run: RunView
    spec: RunSpec
    fields: Fields
    rules: Judging

    @classmethod
    def of(cls, ledger: Ledger, run: RunView, fields: Fields) -> "Look":
        spec = from_json(run.spec_json)
        rules = Judging(
            gen_id=run.gen_id,
            vocabulary_size=_vocabulary(ledger, spec),
            think_open=_single(spec.think_open_ids),
            think_close=_single(spec.think_close_ids),
            detect_loops=spec.detect_loops,
        )
        return cls(run=run, spec=spec, fields=fields, rules=rules)


def _vocabulary(ledger: Ledger, spec: RunSpec) -> int | None:
    """Return how many ids the model has, as far as spec, servers or its own folder told."""
    told = [json.loads(each.facts_json) for each in servers(ledger) if each.url in spec.server_urls]
    facts = [
        ServerFacts(
            vocabulary_size=size if type(size := each.get("vocabulary_size")) is int else None,
            model_path=path if isinstance(path := each.get("model_path"), str) else None,
        )
        for each in told
    ]
    sizes = [vocabulary_size(spec, each) for each in facts or [ServerFacts()]]
    return min((size for size in sizes if size is not None), default=None)


def _single(ids: tuple[int, ...] | None) -> int | None:
    """Return the mark's id; a mark of several ids is not looked for."""
    return ids[0] if ids and len(ids) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A line and its sample; `keep` is None where a text has no ids yet."""

    line: Earlier
    sample: Sought
    keep: Keep | None


@dataclass(slots=True, kw_only=True)
class Looked:
    """What a file holds for its partition. `chosen` is the line of each sample that is found."""

    source: Source
    n_lines: int = 0
    chosen: dict[SampleId, int] = field(default_factory=dict)
    n_texts: int = 0
    n_unsaid: int = 0
    n_uncompared: int = 0
    left: Counter[Left] = field(default_factory=Counter)
    shown: dict[Left, list[str]] = field(default_factory=dict)

    def leave(self, why: Left, number: int, about: str) -> None:
        """Count a line that is left; the first of each kind are shown with file and line."""
        self.left[why] += 1
        examples = self.shown.setdefault(why, [])
        if len(examples) < MOST_SHOWN:
            examples.append(f"{self.source.path}:{number}: {about}")


def look_at(ledger: Ledger, look: Look, source: Source, progress: Progress) -> Looked:
    """Read the file to its end; InputError if it cannot be read at all."""
    looked = Looked(source=source)
    texts: set[SampleId] = set()
    unsaid: set[SampleId] = set()
    uncompared: set[SampleId] = set()
    for judged in judged_lines(ledger, look, source, progress, looked):
        sample_id, found = judged.sample.sample_id, judged.line.found
        earlier = looked.chosen.get(sample_id)
        if earlier is not None:
            looked.leave(Left.DOUBLED, earlier, f"{judged.sample.key}, see {judged.line.number}")
        looked.chosen[sample_id] = judged.line.number
        for marked, is_so in (
            (texts, found.ids is None),
            (unsaid, found.finish_reason is None),
            (uncompared, not found.prompt_sha256s),
        ):
            (marked.add if is_so else marked.discard)(sample_id)
    looked.n_texts, looked.n_unsaid, looked.n_uncompared = map(len, (texts, unsaid, uncompared))
    return looked


def judged_lines(
    ledger: Ledger, look: Look, source: Source, progress: Progress, looked: Looked
) -> Iterator[Judged]:
    """Yield the lines that may be taken, doubled ones too; count those that are left."""
    reads = earlier_lines(source.path, look.fields)
    while batch := list(islice(reads, _BATCH_LINES)):
        looked.n_lines += len(batch)
        yield from _judged(ledger, look, source, batch, looked)
        progress(source, batch[-1].n_bytes, looked.n_lines)


def _judged(
    ledger: Ledger, look: Look, source: Source, batch: Sequence[Read], looked: Looked
) -> Iterator[Judged]:
    lines = [each.line for each in batch if isinstance(each.line, Earlier)]
    samples = _samples(ledger, look, source, lines)
    for line, _ in batch:
        if isinstance(line, Skipped):
            looked.leave(line.why, line.number, line.shown)
            continue
        judged = _judge(line, samples.get(line.number, []), look)
        if isinstance(judged, Judged):
            yield judged
        else:
            looked.leave(judged, line.number, _about(line))


def _samples(
    ledger: Ledger, look: Look, source: Source, lines: Sequence[Earlier]
) -> dict[int, list[Sought]]:
    """Return for each line's number the samples that it may mean."""
    partition_id, n_replicas = source.partition.id, look.spec.samples_per_prompt
    if not look.fields.by_index:
        keys = list({line.key for line in lines if line.key is not None})
        named = adopting.by_key(ledger, partition_id, keys)
        return {line.number: named.get((line.key or "", line.replica), []) for line in lines}
    meant = {line.number: (line.index_of_record, line.replica) for line in lines}
    sane = {each for each in meant.values() if 0 <= each[0] < 1 << 40 and each[1] < n_replicas}
    numbered = adopting.by_index(ledger, partition_id, list(sane), n_replicas)
    return {number: [numbered[record]] for number, record in meant.items() if record in numbered}


def _judge(line: Earlier, samples: Sequence[Sought], look: Look) -> Judged | Left:
    if not samples:
        return Left.UNKNOWN
    digests = line.found.prompt_sha256s
    fitting = [each for each in samples if each.prompt_sha256 in digests] or list(samples)
    if len(fitting) > 1:
        return Left.AMBIGUOUS
    sample = fitting[0]
    left = why_left(line.found, sample, look.rules)
    if left is not None:
        return left
    if line.found.ids is None:
        return Judged(line=line, sample=sample, keep=None)
    keep = verdict(line.found.ids, line.found.finish_reason, sample, look.rules)
    return Judged(line=line, sample=sample, keep=keep) if isinstance(keep, Keep) else keep


def _about(line: Earlier) -> str:
    meant = f"record {line.index_of_record}" if line.key is None else line.key
    return meant if len(meant) <= 80 else meant[:80] + "…"  # noqa: PLR2004 - a line's width
