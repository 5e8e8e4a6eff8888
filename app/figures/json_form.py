"""The figures as JSON values and back: what `/api/v1` sends and `status --json` prints.

Owns the key names. Units stand in the keys, every time carries its offset (prg-04), what is not
known is null with its reason beside it. Invariant: `from_json(to_json(figures)) == figures`.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from app.clock import iso
from app.core.conditions import Condition, ConditionKind
from app.core.estimate import Estimate, Unknown
from app.core.landing import EndsBy, Landing
from app.core.states import PartitionState, RunState
from app.core.types import Counts, PartitionId, RunId, Tokens
from app.figures.concerns import concerns
from app.figures.load_form import load_from_json, load_to_json
from app.figures.shapes import PartitionFigures, RunFigures

Json = dict[str, Any]
_COUNTS = tuple(field.name for field in fields(Counts))
_TOKENS = tuple(field.name for field in fields(Tokens))


def to_json(figures: RunFigures) -> Json:
    """Return the run with its partitions."""
    return {
        "id": figures.run_id,
        "name": figures.name,
        "state": str(figures.state),
        "state_since": iso(figures.state_since),
        "reason": figures.reason,
        "is_served": figures.is_served,
        "at": iso(figures.at),
        "created_at": _moment(figures.created_at),
        "heartbeat_at": _moment(figures.heartbeat_at),
        "output_dir": figures.output_dir,
        "percent": figures.percent,
        "samples": _counts(figures.counts),
        "tokens": _tokens(figures.tokens),
        "token_budget_tokens": figures.token_budget_tokens,
        "deadline_at": _moment(figures.deadline_at),
        **_ends(figures.ends),
        "in_flight_requests": figures.n_in_flight,
        "speed_tokens_per_s": figures.speed_tokens_per_s,
        "mean_hour_tokens_per_s": figures.mean_hour_tokens_per_s,
        "best_tokens_per_s": figures.best_tokens_per_s,
        **_time_left(figures.time_left),
        "decided_by_partition": figures.decided_by,
        "last_token_at": _moment(figures.last_token_at),
        "conditions": [_condition(one) for one in figures.conditions],
        "needs_you": concerns(figures),
        "servers": [load_to_json(each) for each in figures.servers],
        "partitions": [partition_to_json(each) for each in figures.partitions],
    }


def partition_to_json(figures: PartitionFigures) -> Json:
    return {
        "id": figures.id,
        "name": figures.name,
        "class": figures.class_name,
        "state": str(figures.state),
        "state_since": iso(figures.state_since),
        "reason": figures.reason,
        "intake": figures.intake,
        "is_over": figures.is_over,
        "percent": figures.percent,
        "samples": _counts(figures.counts),
        "goal_samples": figures.goal_samples,
        "tokens": _tokens(figures.tokens),
        "reserved_tokens": figures.reserved_tokens,
        "token_budget_tokens": figures.token_budget_tokens,
        "budget_reached": figures.budget_reached,
        "deadline_at": _moment(figures.deadline_at),
        **_ends(figures.ends),
        "max_new_tokens": figures.max_new_tokens,
        "own_concurrency_requests": figures.own_concurrency,
        "concurrency_requests": figures.concurrency_requests,
        "in_flight_requests": figures.n_in_flight,
        "speed_tokens_per_s": figures.speed_tokens_per_s,
        **_time_left(figures.time_left),
        "work_left_s": _work_left_s(figures.time_left),
        "last_token_at": _moment(figures.last_token_at),
        "sealed_at": _moment(figures.sealed_at),
        "remarks": list(figures.remarks),
        "spark_tokens_per_s": list(figures.spark_tokens_per_s),
    }


def from_json(value: Mapping[str, Any]) -> RunFigures:
    """Return the figures that another process sent."""
    return RunFigures(
        run_id=RunId(value["id"]),
        name=value["name"],
        state=RunState(value["state"]),
        state_since=datetime.fromisoformat(value["state_since"]),
        reason=value["reason"],
        output_dir=value["output_dir"],
        at=datetime.fromisoformat(value["at"]),
        percent=value["percent"],
        token_budget_tokens=value["token_budget_tokens"],
        speed_tokens_per_s=value["speed_tokens_per_s"],
        time_left=_read_time_left(value),
        decided_by=value["decided_by_partition"],
        conditions=tuple(_read_condition(one) for one in value["conditions"]),
        partitions=tuple(_read_partition(each) for each in value["partitions"]),
        is_served=value["is_served"],
        created_at=_read_moment(value["created_at"]),
        heartbeat_at=_read_moment(value["heartbeat_at"]),
        mean_hour_tokens_per_s=value["mean_hour_tokens_per_s"],
        best_tokens_per_s=value["best_tokens_per_s"],
        servers=tuple(load_from_json(each) for each in value["servers"]),
        deadline_at=_read_moment(value["deadline_at"]),
        ends=_read_ends(value),
    )


def _read_partition(value: Mapping[str, Any]) -> PartitionFigures:
    return PartitionFigures(
        id=PartitionId(value["id"]),
        name=value["name"],
        class_name=value["class"],
        state=PartitionState(value["state"]),
        state_since=datetime.fromisoformat(value["state_since"]),
        reason=value["reason"],
        intake=value["intake"],
        is_over=value["is_over"],
        percent=value["percent"],
        counts=Counts(**{name: value["samples"][name] for name in _COUNTS}),
        tokens=Tokens(**{name: value["tokens"][f"{name}_tokens"] for name in _TOKENS}),
        reserved_tokens=value["reserved_tokens"],
        own_concurrency=value["own_concurrency_requests"],
        token_budget_tokens=value["token_budget_tokens"],
        goal_samples=value["goal_samples"],
        budget_reached=value["budget_reached"],
        sealed_at=_read_moment(value["sealed_at"]),
        n_in_flight=value["in_flight_requests"],
        speed_tokens_per_s=value["speed_tokens_per_s"],
        time_left=_read_time_left(value),
        last_token_at=_read_moment(value["last_token_at"]),
        remarks=tuple(value["remarks"]),
        max_new_tokens=value["max_new_tokens"],
        concurrency_requests=value["concurrency_requests"],
        spark_tokens_per_s=tuple(value["spark_tokens_per_s"]),
        deadline_at=_read_moment(value["deadline_at"]),
        ends=_read_ends(value),
    )


def _condition(one: Condition) -> Json:
    return {
        "kind": str(one.kind),
        "since": iso(one.since),
        "sentence": one.sentence,
        "partition": one.partition or None,
        "ratio": one.ratio,
        "wastes": one.wastes,
    }


def _read_condition(value: Mapping[str, Any]) -> Condition:
    return Condition(
        kind=ConditionKind(value["kind"]),
        since=datetime.fromisoformat(value["since"]),
        sentence=value["sentence"],
        partition=value["partition"] or "",
        ratio=value["ratio"],
        wastes=value["wastes"],
    )


def _ends(ends: Landing | None) -> Json:
    if ends is None:
        return {"ends_at_percent": None, "ends_by": None}
    return {"ends_at_percent": ends.percent, "ends_by": str(ends.by)}


def _read_ends(value: Mapping[str, Any]) -> Landing | None:
    if value["ends_by"] is None:
        return None
    return Landing(percent=value["ends_at_percent"], by=EndsBy(value["ends_by"]))


def _counts(counts: Counts) -> Json:
    return {**asdict(counts), "kept": counts.kept, "total": counts.total}


def _tokens(tokens: Tokens) -> Json:
    values = {f"{name}_tokens": value for name, value in asdict(tokens).items()}
    return {**values, "used_tokens": tokens.used}


def _time_left(left: Estimate | Unknown) -> Json:
    if isinstance(left, Unknown):
        return {"time_left_s": None, "time_left_unknown_because": left.why}
    values = {"low": left.low_s, "middle": left.mid_s, "high": left.high_s}
    return {"time_left_s": values, "time_left_unknown_because": None}


def _work_left_s(left: Estimate | Unknown) -> float | None:
    return left.work_s if isinstance(left, Unknown) else None


def _read_time_left(value: Mapping[str, Any]) -> Estimate | Unknown:
    left = value["time_left_s"]
    if left is None:
        return Unknown(why=value["time_left_unknown_because"], work_s=value.get("work_left_s"))
    return Estimate(low_s=left["low"], mid_s=left["middle"], high_s=left["high"])


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def _read_moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
