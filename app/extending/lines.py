"""The kept lines of truncated answers, read back as what their next attempt builds on.

Reads each line at its own place, never a whole file. Invariant: what is handed on is the answer
of that very sample: request id, prompt hash, length and ids are what the ledger says of it.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.core.extending import Stay, is_of, tokens_to_hold
from app.core.rids import parse_rid
from app.core.types import Segment
from app.errors import StorageError
from app.files.kept_answers import KeptAnswer, read_kept
from app.files.sealed import LineSource
from app.ledger.extending import Cut, Going


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads lines for one order. `end_ids`: the ids that end an answer, None if none is known."""

    source: LineSource
    gen_id: str
    end_ids: Collection[int] | None
    sampling: Mapping[str, object]

    def going(self, cut: Cut) -> Going | Stay:
        """Return the answer as its own checkpoint, or why it stays."""
        place = cut.place
        try:
            line = self.source.read(Path(place.path), place.offset, place.n_bytes)
        except StorageError:
            return Stay.UNREADABLE
        answer = read_kept(line)
        if answer is None or not _is_answer_of(answer, cut):
            return Stay.UNREADABLE
        if not is_of(answer.segments, self.gen_id):
            return Stay.OTHER_SETTINGS
        n = tokens_to_hold(answer.output_ids, self.end_ids, {**self.sampling, **cut.sampling})
        return Going(cut=cut, pieces=_pieces(answer, n))


def _is_answer_of(answer: KeptAnswer, cut: Cut) -> bool:
    rid = parse_rid(answer.rid)
    return (
        rid is not None
        and rid.sample_id == cut.sample_id
        and answer.prompt_sha256 == cut.prompt_sha256
        and len(answer.output_ids) == answer.completion_tokens == cut.output_tokens
    )


def _pieces(answer: KeptAnswer, n_tokens: int) -> list[tuple[Segment, bytes]]:
    """Return the first tokens, cut where another request went on."""
    starts = [each.from_token for each in answer.segments]
    ends = [*starts[1:], n_tokens]
    return [
        (segment, answer.output_ids[segment.from_token : min(end, n_tokens)].tobytes())
        for segment, end in zip(answer.segments, ends, strict=True)
        if segment.from_token < min(end, n_tokens)
    ]
