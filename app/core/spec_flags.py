"""The flags of `longwatch run` to `RunSpec`: the form of the job that Longwatch replaces.

Owns the defaults of that form and the rule which partition is short. Does not parse a command
line. Invariant: the same flags give the same spec, so that a killed job started again with them
goes on with the same run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from app.core.deadlines import deadline_problem
from app.core.spec import (
    ClassSpec,
    PartitionSpec,
    RunSpec,
    SpecError,
    default_class,
    parse_tokens,
    partition_name_problem,
)
from app.core.spec_checks import said_of, server_urls
from app.core.spec_parse import MAX_CONCURRENCY, MAX_NEW_TOKENS, MAX_SAMPLES
from app.core.spec_sampling import sampling_problems

ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What was typed; budget and samples hold for each partition.

    `partitions` holds names, `all`, or lists of names with commas.
    """

    partitions: Sequence[str] = (ALL,)
    output_dir: str
    server_urls: Sequence[str]
    prompts_dir: str | None = None
    name: str | None = None
    short_concurrency: int = 150
    short_max_tokens: int = 10_240
    long_concurrency: int = 32
    long_max_tokens: int = 16_384
    max_samples: int | None = None
    token_budget: str | None = None
    deadline: str | None = None
    short: Sequence[str] = ()
    sampling: Mapping[str, object] = field(default_factory=dict)
    chat_template_kwargs: Mapping[str, object] = field(default_factory=dict)


def spec_from_flags(flags: RunFlags) -> RunSpec:
    """Return the run that the flags ask for. SpecError names every flag that is wrong."""
    urls, complaints = server_urls(flags.server_urls)
    problems = [said_of("--server-url", complaint) for complaint in complaints]
    problems += _number_problems(flags)
    problems += [
        said_of(f"sampling {key}", complaint)
        for key, complaint in sampling_problems(flags.sampling)
    ]
    budget_tokens = _budget_tokens(flags.token_budget, problems)
    if flags.deadline is not None and (problem := deadline_problem(flags.deadline)):
        problems.append(f"--deadline: {problem}")
    names = _partition_names(flags.partitions, problems)
    if not flags.output_dir.strip():
        problems.append("--output-dir is empty; name the folder for the answers")
    if problems:
        raise SpecError("command line", problems)
    classes = {
        "short": ClassSpec(
            concurrency=flags.short_concurrency, max_new_tokens=flags.short_max_tokens
        ),
        "long": ClassSpec(concurrency=flags.long_concurrency, max_new_tokens=flags.long_max_tokens),
    }
    short = tuple(flags.short)
    return RunSpec(
        name=flags.name or PurePath(flags.output_dir).name or "run",
        server_urls=urls,
        prompts_dir=flags.prompts_dir or flags.output_dir,
        output_dir=flags.output_dir,
        classes=classes,
        partitions={
            name: PartitionSpec(class_name=default_class(classes, short, name) or "long")
            for name in names
        },
        short_partitions=short,
        sampling=dict(flags.sampling),
        chat_template_kwargs=dict(flags.chat_template_kwargs),
        default_token_budget_tokens=budget_tokens,
        default_max_samples=flags.max_samples,
        deadline=flags.deadline,
    )


def _number_problems(flags: RunFlags) -> list[str]:
    bounds = [
        ("--short-concurrency", flags.short_concurrency, MAX_CONCURRENCY),
        ("--long-concurrency", flags.long_concurrency, MAX_CONCURRENCY),
        ("--short-max-tokens", flags.short_max_tokens, MAX_NEW_TOKENS),
        ("--long-max-tokens", flags.long_max_tokens, MAX_NEW_TOKENS),
        ("--max-samples", 1 if flags.max_samples is None else flags.max_samples, MAX_SAMPLES),
    ]
    return [
        f"{flag}: {value} is not a whole number from 1 to {high:,}"
        for flag, value, high in bounds
        if not 1 <= value <= high
    ]


def _budget_tokens(given: str | None, problems: list[str]) -> int | None:
    if given is None:
        return None
    try:
        return parse_tokens(given)
    except ValueError as problem:
        problems.append(f"--token-budget: {problem}")
        return None


def _partition_names(given: Sequence[str], problems: list[str]) -> tuple[str, ...]:
    """Return the names that were asked for, each once; none means all."""
    names = [name.strip() for one in given for name in one.split(",") if name.strip()]
    if not names:
        problems.append('--partition is empty; give names or "all"')
    if ALL in names:
        return ()
    found = (partition_name_problem(name) for name in names)
    problems += [f"--partition: {problem}" for problem in found if problem]
    return tuple(dict.fromkeys(names))
