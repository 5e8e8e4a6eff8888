"""GET route of measures: how long a partition's answers are, and how long they took.

Owns how a moment in an address is read. Invariant: one request reads hours times buckets, however
many samples there are; what was not measured is null.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.schemas_measures import MeasuresAnswer
from app.api.sending import Json, PartitionWord, RunWord, as_json
from app.clock import from_ms, iso, to_ms
from app.controls import find_run
from app.core.spread import Measure, Spread, cut_ratio
from app.errors import InputError
from app.extending.refusing import named
from app.ledger import measures
from app.ledger.db import Ledger

_PERCENTS = (10, 50, 90, 95, 99)
_UNITS = {
    Measure.OUTPUT: "tokens",
    Measure.OUTPUT_CUT: "tokens",
    Measure.PROMPT: "tokens",
    Measure.FIRST_TOKEN: "ms",
    Measure.LATENCY: "ms",
}
Since = Annotated[
    str | None,
    Query(
        max_length=40,
        description="A moment with its offset, like 2026-12-01T08:00:00Z. Hours are whole: the one"
        " that it lies in counts from its beginning. Left out: everything.",
    ),
]


def measure_routes(ledger: Ledger) -> APIRouter:
    router = APIRouter()

    @router.get(
        "/runs/{run}/partitions/{partition}/measures",
        response_model=MeasuresAnswer,
        summary="Lengths and times of a partition's answers",
    )
    def of_partition(run: RunWord, partition: PartitionWord, since: Since = None) -> Response:
        """Return counts in buckets and percentiles of the answers that have ended."""
        found = named(ledger, find_run(ledger, run), partition)
        since_ms = None if since is None else _moment_ms(since)
        spreads = measures.spreads(ledger, found.id, since_ms=since_ms)
        return as_json(
            {
                "partition": found.name,
                "since": None if since_ms is None else iso(from_ms(measures.hour_of(since_ms))),
                "cut_ratio": cut_ratio(spreads[Measure.OUTPUT], spreads[Measure.OUTPUT_CUT]),
                **{f"{kind}_{_UNITS[kind]}": _measure(each) for kind, each in spreads.items()},
            }
        )

    return router


def _moment_ms(text: str) -> int:
    """Return ms since 1970, at least 0. A plus that was not escaped arrives as a space."""
    try:
        return max(0, to_ms(datetime.fromisoformat(text[:-6] + text[-6:].replace(" ", "+"))))
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"since = {text!r} is not a moment with an offset",
            hint="Write it like 2026-12-01T08:00:00Z",
        ) from error


def _measure(spread: Spread) -> Json:
    return {
        "n": spread.n,
        "mean": spread.mean,
        **{f"p{percent}": spread.percentile(percent / 100) for percent in _PERCENTS},
        "buckets": [[bucket.upper, bucket.n] for bucket in spread.buckets],
    }
