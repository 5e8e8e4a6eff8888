"""A spec that came as JSON: checked like one that came as TOML, since anybody may have written it.

Owns the refusal of what the parser of specs would never have let through: values of other types,
names that are no names, classes that are not there, numbers out of their range.
"""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.core.deadlines import deadline_problem
from app.core.spec import RunSpec, from_json, partition_name_problem, to_json
from app.core.spec_checks import server_urls
from app.core.spec_sampling import sampling_problems
from app.core.thresholds import threshold_problems
from app.errors import InputError

_MOST_REQUESTS = 10_000
_MOST_REPLICAS = 1_000
_MOST_ATTEMPTS = 100
_FORM = TypeAdapter(RunSpec)


def spec_of(value: dict[str, Any]) -> RunSpec:
    """Return the spec; InputError names what is wrong with it."""
    try:
        spec = from_json(json.dumps(value))
        _FORM.validate_json(to_json(spec), strict=True)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        raise InputError("the spec is not usable: " + "; ".join(told)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the spec is not in the form of this version: {type(error).__name__} {error}",
            hint="use a longwatch of the version of the service",
        ) from error
    problems = list(_problems(spec))
    if problems:
        raise InputError("the spec is not usable: " + "; ".join(problems))
    return spec


def _problems(spec: RunSpec) -> Iterator[str]:
    if not spec.name.strip():
        yield "the run has no name"
    if not spec.server_urls:
        yield "server_urls is empty"
    yield from server_urls(spec.server_urls)[1]
    for name, partition in spec.partitions.items():
        problem = partition_name_problem(name)
        if problem:
            yield problem
        if partition.class_name not in spec.classes:
            yield f"partition {name} has the class {partition.class_name}, which is not there"
    yield from _numbers(spec)
    yield from _deadlines(spec)
    for key, complaint in sampling_problems(spec.sampling):
        yield f"{key} {complaint}"


def _deadlines(spec: RunSpec) -> Iterator[str]:
    """Yield deadlines that are no moments; whether one has passed is looked at when it is set."""
    written = {"the run": spec.deadline}
    written |= {name: one.deadline for name, one in spec.partitions.items()}
    for place, deadline in written.items():
        if deadline is not None and (problem := deadline_problem(deadline)):
            yield f"deadline of {place}: {problem}"


def _numbers(spec: RunSpec) -> Iterator[str]:
    """Yield numbers that are out of their range."""
    for name, each in spec.classes.items():
        yield from _out_of(f"concurrency of class {name}", each.concurrency, _MOST_REQUESTS)
        yield from _out_of(f"max_new_tokens of class {name}", each.max_new_tokens)
    for name, one in spec.partitions.items():
        yield from _out_of(f"concurrency of {name}", one.concurrency, _MOST_REQUESTS)
        yield from _out_of(f"max_new_tokens of {name}", one.max_new_tokens)
        yield from _out_of(f"max_samples of {name}", one.max_samples)
        yield from _out_of(f"token budget of {name}", one.token_budget_tokens)
    yield from _out_of("token budget", spec.token_budget_tokens)
    yield from _out_of("samples_per_prompt", spec.samples_per_prompt, _MOST_REPLICAS)
    yield from _out_of("max_attempts", spec.max_attempts, _MOST_ATTEMPTS)
    yield from threshold_problems(spec.thresholds)


def _out_of(what: str, n: int | None, most: int = 2**53) -> Iterator[str]:
    if n is not None and not 1 <= n <= most:
        yield f"{what} is {n}, not a whole number from 1 to {most:,}"
