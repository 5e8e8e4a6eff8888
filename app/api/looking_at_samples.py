"""GET routes of samples: pages of a partition, and one sample with its attempts and its answer.

Owns how an answer's line is found: by the sample's id in the ledger, never by a name from outside.
Invariant: a page looks at a bounded number of rows, and one sample reads one line of one file.
"""

from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.schemas_samples import OneSampleAnswer, SamplesAnswer
from app.api.sending import Json, RowId, RunWord, as_json
from app.clock import iso
from app.controls import find_run
from app.core.states import SampleState
from app.core.types import SampleId
from app.core.views import PartitionView, RunView
from app.errors import InputError, NotFoundError, StorageError
from app.files.answer_lines import read_answer
from app.ledger import runs
from app.ledger.browsing import SampleEntry, sample_page
from app.ledger.db import Ledger
from app.ledger.one_sample import SampleWhole, whole_sample

_MOST = 2**53
_TRIES = 2
PartitionName = Annotated[
    str | None,
    Query(max_length=200, description="Name; left out where the run has only one partition."),
]
State = Annotated[SampleState | None, Query(description="Only samples of this state.")]
After = Annotated[
    int, Query(ge=-1, lt=_MOST, description="The position behind which to begin: `next_after`.")
]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many samples at most.")]
SampleNumber = Annotated[RowId, Path(description="Id of the sample.")]


def sample_routes(ledger: Ledger) -> APIRouter:
    router = APIRouter()

    @router.get(
        "/runs/{run}/samples", response_model=SamplesAnswer, summary="Samples of a partition"
    )
    def samples(
        run: RunWord,
        partition: PartitionName = None,
        state: State = None,
        after: After = -1,
        limit: Limit = 100,
    ) -> Response:
        """Return a page of a partition's samples in input order.

        With a state asked for a page may be short or empty and still have a `next_after`.
        """
        chosen = _partition(ledger, find_run(ledger, run), partition)
        page = sample_page(ledger, chosen, state, after, limit)
        return as_json(
            {
                "partition": chosen.name,
                "samples": [_sample(each, chosen.name) for each in page.samples],
                "next_after": page.next_after,
            }
        )

    @router.get(
        "/runs/{run}/samples/{sample}",
        response_model=OneSampleAnswer,
        summary="One sample with its attempts and its answer",
    )
    def one_sample(run: RunWord, sample: SampleNumber) -> Response:
        """Return a sample, its attempts that kept nothing, and the line of its answer."""
        return as_json(_whole(ledger, find_run(ledger, run), SampleId(sample)))

    return router


def _partition(ledger: Ledger, run: RunView, name: str | None) -> PartitionView:
    known = runs.partitions_of(ledger, run.id)
    found = [each for each in known if name in (None, each.name)]
    names = ", ".join(each.name for each in known)
    if not found:
        raise NotFoundError(f"run {run.id} has no partition {name}", hint=f"It has {names}")
    if len(found) > 1:
        raise InputError(
            f"run {run.id} has {len(found)} partitions; say which with partition=",
            hint=f"It has {names}",
        )
    return found[0]


def _sample(entry: SampleEntry, partition: str) -> Json:
    return {
        "id": entry.id,
        "partition": partition,
        "key": entry.key,
        "position": entry.position,
        "index": entry.index,
        "replica": entry.replica,
        "turn": entry.turn,
        "state": str(entry.state),
        "prompt_tokens": entry.prompt_tokens,
        "output_tokens": entry.output_tokens,
        "held_tokens": entry.held_tokens,
        "attempt": entry.attempt,
        "charged": entry.charged,
        "finish_reason": entry.finish_reason,
        "flags": list(entry.flags),
        "reason": entry.reason,
    }


def _whole(ledger: Ledger, run: RunView, sample_id: SampleId) -> Json:
    found, answer, missing = answered(ledger, run, sample_id)
    partition = runs.get_partition(ledger, found.entry.partition_id)
    return {
        **_sample(found.entry, partition.name),
        "prompt_sha256": found.prompt_sha256,
        "max_new_tokens": found.max_new_tokens,
        "checkpoints": found.n_checkpoints,
        "checkpoint_tokens": found.checkpoint_tokens,
        "attempts": [
            {
                "attempt": each.attempt,
                "at": iso(each.at),
                "is_charged": each.is_charged,
                "tokens": each.tokens,
                "reason": each.reason,
            }
            for each in found.attempts
        ],
        "answer": answer,
        "answer_missing_because": missing,
    }


def answered(
    ledger: Ledger, run: RunView, sample_id: SampleId
) -> tuple[SampleWhole, Json | None, str | None]:
    """Return the sample with its line, or why there is none; for the page of a sample too.

    A line that is not there is looked for once more: sealing may just have moved it.
    """
    missing = ""
    found = whole_sample(ledger, run.id, sample_id)
    for _ in range(_TRIES):
        line = found.line
        if line is None:
            return found, None, f"it has no answer yet; it is {found.entry.state}"
        try:
            answer = read_answer(
                FilePath(run.output_dir),
                FilePath(line.path),
                line.offset,
                line.n_bytes,
                key=found.entry.key,
            )
        except StorageError as error:
            missing = f"its line cannot be shown: {error}"
            found = whole_sample(ledger, run.id, sample_id)
        else:
            return found, answer, None
    return found, None, missing
