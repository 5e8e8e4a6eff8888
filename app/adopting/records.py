"""An adopted answer as a line of ours: which keys tell that no request of this run has made it.

Its request id has the shape of ours, with attempt 0, which no claim has: recovery knows the sample
by it, and any answer that was really asked for is newer. The segment of ids that were made of a
text bears no gen_id, so nothing ever continues them.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from dataclasses import dataclass
from datetime import datetime
from random import Random

from app.adopting.looking import Judged, Look
from app.core.adopting import ADOPTED_ATTEMPT, FLAG_ADOPTED, FLAG_ADOPTED_TEXT
from app.core.rids import RequestId
from app.core.types import Keep, Segment
from app.core.views import PartitionView
from app.files.records import Record

SERVER = "an earlier script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the lines of one batch share. `at` is when they are taken over."""

    look: Look
    partition: PartitionView
    at: datetime
    random: Random


def record_of(each: Judged, ids: array[int], keep: Keep, origin: Origin) -> Record:
    """Return the line as values. It ended when it was taken over: nobody knows any other time."""
    sample, found, gen_id = each.sample, each.line.found, origin.look.rules.gen_id
    rid = str(
        RequestId(
            run_id=origin.look.run.id,
            partition_id=origin.partition.id,
            sample_id=sample.sample_id,
            attempt=ADOPTED_ATTEMPT,
            salt=origin.random.getrandbits(32),
        )
    )
    segment_gen_id = "" if found.ids is None else gen_id
    segment = Segment(from_token=0, rid=rid, server=SERVER, gen_id=segment_gen_id)
    return Record(
        rid=rid,
        key=sample.key,
        index=sample.index,
        replica=sample.replica if origin.look.spec.samples_per_prompt > 1 else None,
        partition=origin.partition.name,
        status=keep.state,
        finish_reason=keep.finish_reason,
        flags=flags_of(each, keep),
        prompt_tokens=sample.prompt_tokens or 0,
        completion_tokens=len(ids),
        max_new_tokens=sample.limit_tokens,
        attempts=ADOPTED_ATTEMPT,
        segments=(segment,),
        gen_id=gen_id,
        started_at=None,
        finished_at=origin.at,
        prompt_sha256=sample.prompt_sha256,
        text=found.text,
        output_ids=ids,
    )


def flags_of(each: Judged, keep: Keep) -> tuple[str, ...]:
    own = (FLAG_ADOPTED,) if each.line.found.ids is not None else (FLAG_ADOPTED, FLAG_ADOPTED_TEXT)
    return (*keep.flags, *own)
