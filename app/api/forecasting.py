"""GET a run's forecast: what its training data takes on the disk, as `longwatch forecast --json`.

Owns the form that API and command line share. The folder is the run's own: an address names none.
Free space is asked with a limit of time, in the route's own thread.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.door import ServiceDoor
from app.api.schemas_reading import Answer
from app.api.sending import Json, RunWord, as_json
from app.controls import find_run
from app.core.training_bytes import Form, HiddenStates, Stored, merged_bytes
from app.errors import InputError
from app.files.space import free_bytes
from app.ledger.db import Ledger
from app.sizing import PartSize, sizes, tokens_band, total_tokens

EAGLE3_HIDDEN_SIZE = 7168
_STORED = {"bf16": Stored.BF16, "fp8": Stored.FP8, "fp32": Stored.FP32}
_MOST = 1 << 24
Size = Annotated[int, Query(ge=1, le=_MOST, description="Numbers of a hidden state.")]
Layers = Annotated[int, Query(ge=1, le=1_000, description="Layers captured, the last too.")]
Dtype = Annotated[str, Query(max_length=20, description="bf16, fp8 or fp32.")]
MaxLength = Annotated[
    int | None, Query(ge=1, le=_MOST, description="Where training cuts a sample, in tokens.")
]


class PartForecast(Answer):
    """A partition at its end. `tokens`: prompts included; null while no answer is measured."""

    name: str
    samples: int
    measured_answers: int
    tokens: int | None


class MergedBytes(Answer):
    jsonl: int
    parquet: int
    arrow: int


class ForecastAnswer(Answer):
    """What the training data of a run takes; bytes are decimal.

    `tokens_low` and `tokens_high` hold the total in eight of ten cases as far as the lengths tell,
    null while a partition has fewer than 20 measured answers; long answers end last, so early in a
    run the truth is rather above. `is_lower_bound`: a partition has no measured answer and is in no
    sum. `free_bytes`: of the disk of the run's output, null where it does not answer in time.
    """

    partitions: list[PartForecast]
    tokens: int
    tokens_low: int | None
    tokens_high: int | None
    is_lower_bound: bool
    max_length: int | None
    bytes_per_token: int
    hidden_states_bytes: int
    merged_bytes: MergedBytes
    free_bytes: int | None


def forecast_routes(ledger: Ledger, service: ServiceDoor) -> APIRouter:
    router = APIRouter()

    @router.get(
        "/runs/{run}/forecast",
        response_model=ForecastAnswer,
        summary="What training data takes on the disk",
    )
    def forecast(
        run: RunWord,
        hidden_size: Size = EAGLE3_HIDDEN_SIZE,
        layers: Layers = 4,
        dtype: Dtype = "bf16",
        max_length: MaxLength = None,
    ) -> Response:
        """Return tokens, merged bytes and hidden states at the run's end, beside the free space."""
        states = HiddenStates(
            hidden_size=hidden_size, n_aux_layers=layers - 1, stored=stored_as(dtype)
        )
        found = find_run(ledger, run)
        parts = sizes(ledger, found.id)
        free = free_bytes(Path(found.output_dir), service.settings.space_timeout_s)
        n_tokens = total_tokens(parts, max_length)
        return as_json(forecast_to_json(parts, n_tokens, states, max_length, free))

    return router


def stored_as(dtype: str, name: str = "dtype") -> Stored:
    """Return how a number is stored; InputError lists the choices, under what it was given by."""
    if dtype not in _STORED:
        raise InputError(f'{name} "{dtype}" is not known', hint=f"take {', '.join(_STORED)}")
    return _STORED[dtype]


def forecast_to_json(
    parts: Sequence[PartSize],
    n_tokens: int,
    states: HiddenStates,
    max_length: int | None,
    free: int | None,
) -> Json:
    """Return the keys of `ForecastAnswer`; without parts, of so many tokens and no run."""
    low, high = tokens_band(parts, max_length) or (None, None)
    return {
        "partitions": [
            {
                "name": each.name,
                "samples": each.n_samples,
                "measured_answers": each.n_measured,
                "tokens": each.n_tokens(max_length),
            }
            for each in parts
        ],
        "tokens": n_tokens,
        "tokens_low": low,
        "tokens_high": high,
        "is_lower_bound": any(not each.n_measured for each in parts),
        "max_length": max_length,
        "bytes_per_token": states.bytes_per_token,
        "hidden_states_bytes": states.bytes_of(n_tokens),
        "merged_bytes": {form.name.lower(): merged_bytes(n_tokens, form) for form in Form},
        "free_bytes": free,
    }
