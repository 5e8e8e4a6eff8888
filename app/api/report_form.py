"""A run looked back on as JSON: what `/api/v1/runs/{run}/report` sends and `report --json` prints.

Owns the key names and their model for OpenAPI. Errors are ratios (+0.1: 10 % too long), not known
is null.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from pydantic import AwareDatetime

from app.api.schemas_reading import Answer, CountsAnswer, TokensAnswer
from app.clock import iso
from app.core.eta_errors import Verdict
from app.core.states import RunState
from app.core.types import Counts, Tokens
from app.recorder.hindsight import PartitionPast, RunPast

Json = dict[str, Any]


class MarkAnswer(Answer):
    """The error of the time left that stood at a share of the work."""

    work_ratio: float
    error_ratio: float | None


class VerdictAnswer(Answer):
    """How right the shown ends were; medians are of the error's size, until 95 % of the work.

    `n_ends`: a run that was opened again has had more than one; each judges what was shown before.
    """

    marks: list[MarkAnswer]
    median_error_ratio_from_5_percent: float | None
    median_error_ratio_from_25_percent: float | None
    range_held_ratio: float | None
    n_shown: int
    n_ends: int


class PartitionReport(Answer):
    name: str
    ended_at: AwareDatetime | None
    active_s: float
    paused_s: float
    samples: CountsAnswer
    tokens: TokensAnswer
    mean_tokens_per_s: float | None
    verdict: VerdictAnswer | None


class HeldCondition(Answer):
    kind: str
    partition: str
    begin: AwareDatetime
    end: AwareDatetime | None
    sentence: str


class ReportAnswer(Answer):
    """How a run went, all of it; `verdict` is null until an end has come, or where none was shown.

    `opened_at`: when it was last opened. `finished_s`: how long it was finished before openings.
    """

    id: int
    name: str
    state: RunState
    reason: str
    begin: AwareDatetime
    opened_at: AwareDatetime
    ended_at: AwareDatetime | None
    seen_until: AwareDatetime
    active_s: float
    paused_s: float
    unserved_s: float
    finished_s: float
    mean_tokens_per_s: float | None
    best_tokens_per_s: float | None
    n_rows: int
    verdict: VerdictAnswer | None
    partitions: list[PartitionReport]
    conditions: list[HeldCondition]


def report_to_json(past: RunPast) -> Json:
    return {
        "id": past.id,
        "name": past.name,
        "state": str(past.state),
        "reason": past.reason,
        "begin": iso(past.begin),
        "opened_at": iso(past.opened_at),
        "ended_at": _moment(past.ended_at),
        "seen_until": iso(past.seen_until),
        "active_s": past.active_s,
        "paused_s": past.paused_s,
        "unserved_s": past.unserved_s,
        "finished_s": past.finished_s,
        "mean_tokens_per_s": past.mean_tokens_per_s,
        "best_tokens_per_s": past.best_tokens_per_s,
        "n_rows": past.n_rows,
        "verdict": _verdict(past.verdict),
        "partitions": [_partition(each) for each in past.partitions],
        "conditions": [
            {
                "kind": each.kind,
                "partition": each.partition,
                "begin": iso(each.begin),
                "end": _moment(each.end),
                "sentence": each.sentence,
            }
            for each in past.conditions
        ],
    }


def _partition(past: PartitionPast) -> Json:
    return {
        "name": past.name,
        "ended_at": _moment(past.ended_at),
        "active_s": past.active_s,
        "paused_s": past.paused_s,
        "samples": _counts(past.counts),
        "tokens": _tokens(past.tokens),
        "mean_tokens_per_s": past.mean_tokens_per_s,
        "verdict": _verdict(past.verdict),
    }


def _verdict(verdict: Verdict | None) -> Json | None:
    if verdict is None:
        return None
    return {
        "marks": [
            {"work_ratio": mark.share, "error_ratio": mark.error_ratio} for mark in verdict.marks
        ],
        "median_error_ratio_from_5_percent": verdict.median_from_5,
        "median_error_ratio_from_25_percent": verdict.median_from_25,
        "range_held_ratio": verdict.held_ratio,
        "n_shown": verdict.n_shown,
        "n_ends": verdict.n_ends,
    }


def _counts(counts: Counts) -> Json:
    return {**asdict(counts), "kept": counts.kept, "total": counts.total}


def _tokens(tokens: Tokens) -> Json:
    values = {f"{name}_tokens": value for name, value in asdict(tokens).items()}
    return {**values, "used_tokens": tokens.used}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
