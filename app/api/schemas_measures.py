"""What the GET route of measures answers, for OpenAPI. Shapes only, like `schemas_reading.py`."""

from pydantic import AwareDatetime

from app.api.schemas_reading import Answer


class MeasureAnswer(Answer):
    """A measure of answers that ended. Count and mean are exact; null without any.

    A percentile is right to within its bucket, which is at most a quarter as wide as the numbers
    in it are large. `buckets` are pairs of the greatest number that a bucket takes and how many
    it holds, in order; empty ones are left out.
    """

    n: int
    mean: float | None
    p10: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    buckets: list[tuple[int, int]]


class MeasuresAnswer(Answer):
    """Measures of a partition, counted by whole hours: from `since` on, null: from the beginning.

    `output_cut_tokens` are of those answers that ended at max_new_tokens, `cut_ratio` is their
    share. The times are only of answers that one request made whole: from sending it to its first
    token, and to its end.
    """

    partition: str
    since: AwareDatetime | None
    output_tokens: MeasureAnswer
    output_cut_tokens: MeasureAnswer
    cut_ratio: float | None
    prompt_tokens: MeasureAnswer
    first_token_ms: MeasureAnswer
    latency_ms: MeasureAnswer
