"""What an order to extend is refused for, before anything is changed; and the server's limits.

Owns the sentences. Each names the partition, the value and what to do instead.
"""

import json
from collections.abc import Iterator, Mapping

from app.core.continuation import may_continue
from app.core.format import plural
from app.core.prompt_limits import PromptLimits, strictest
from app.core.spec import LengthPolicy, RunSpec
from app.core.spec_parse import MAX_NEW_TOKENS
from app.core.types import ServerFacts
from app.core.views import PartitionView, RunView
from app.errors import ConflictError, InputError, NotFoundError
from app.ledger import extending, runs
from app.ledger.db import Ledger
from app.ledger.servers import servers


def named(ledger: Ledger, run: RunView, name: str) -> PartitionView:
    """Return the run's partition of that name, or number; NotFoundError lists what there is."""
    partitions = runs.partitions_of(ledger, run.id)
    found = next((each for each in partitions if each.name == name), None)
    found = found or next((each for each in partitions if str(each.id) == name), None)
    if found is None:
        known = ", ".join(each.name for each in partitions)
        raise NotFoundError(f"run {run.id} has no partition {name}", hint=f"It has {known}")
    return found


def limits_now(ledger: Ledger, spec: RunSpec) -> PromptLimits:
    """Return what holds on each of the run's servers, as they last said."""
    views = [each for each in servers(ledger) if each.url in spec.server_urls]
    return strictest([_facts(json.loads(each.facts_json)) for each in views], spec.length_policy)


def _facts(stored: Mapping[str, object]) -> ServerFacts:
    def whole(name: str) -> int | None:
        value = stored.get(name)
        return value if type(value) is int else None

    return ServerFacts(
        context_tokens=whole("context_tokens"),
        max_prompt_tokens=whole("max_prompt_tokens"),
        reserved_tokens=whole("reserved_tokens") or 0,
    )


def refuse(
    ledger: Ledger,
    run: RunView,
    spec: RunSpec,
    partition: PartitionView,
    limits: PromptLimits,
    limit_tokens: int,
) -> None:
    """Raise InputError or ConflictError if the order cannot be carried out at all."""
    name, old = partition.name, partition.max_new_tokens
    if not 1 <= limit_tokens <= MAX_NEW_TOKENS:
        raise InputError(
            f"max_new_tokens {limit_tokens:,} is not a whole number from 1 to {MAX_NEW_TOKENS:,}",
            hint=f"{name} has {old:,} now; name a higher one",
        )
    if limit_tokens < old:
        raise InputError(
            f"max_new_tokens {limit_tokens:,} is below the {old:,} that {name} has; extending"
            " never lowers it",
            hint=f"Name a number above {old:,}",
        )
    if partition.intake != "tokenized":
        raise ConflictError(
            f"the prompts of {name} are still being read ({partition.n_tokenized:,} are ready), so"
            " it is not known how long their answers may be",
            hint="Extend it when all of them are ready",
        )
    counts = partition.counts
    if not counts.truncated and not counts.pending and not counts.running:
        raise ConflictError(
            f"{name} has no truncated answer and no sample that is still to come; there is nothing"
            " to extend"
        )
    _refuse_context(spec, partition, limits, limit_tokens)
    if counts.truncated and not may_continue(spec.sampling):
        raise ConflictError(
            f"answers of run {run.id} are made with a penalty or a grammar, which starts afresh"
            f" with each request: none of the {plural(counts.truncated, 'truncated answer')} of"
            f" {name} can be continued",
            hint="Start a run of its own with a higher max_new_tokens",
        )
    _refuse_budget(ledger, run, partition)


def _refuse_context(
    spec: RunSpec, partition: PartitionView, limits: PromptLimits, limit_tokens: int
) -> None:
    usable = limits.usable_tokens
    if usable is None or limit_tokens < usable or spec.length_policy is not LengthPolicy.REJECT:
        return
    raise InputError(
        f"max_new_tokens {limit_tokens:,} leaves no room for any prompt of {partition.name} in the"
        f" context of {limits.context_tokens or 0:,}",
        hint=f"Name at most {usable - 1:,}",
    )


def _refuse_budget(ledger: Ledger, run: RunView, partition: PartitionView) -> None:
    """Refuse what no budget leaves room for: its answers would lie there, neither one nor other."""
    scarcest = min(_rooms(ledger, run, partition), default=None)
    if scarcest is None or (scarcest[0] > 0 and not partition.budget_reached):
        return
    _, whose, used, budget, words = scarcest
    raise ConflictError(
        f"{whose} has used {used:,} of its budget of {budget:,} tokens, which leaves no room for"
        " longer answers",
        hint=f"Raise it first: longwatch budget {words} TOKENS",
    )


def _rooms(
    ledger: Ledger, run: RunView, partition: PartitionView
) -> Iterator[tuple[int, str, int, int, str]]:
    """Yield what each budget has left, whose it is, used, budget, and how a command names it."""
    if partition.token_budget is not None:
        budget, used = partition.token_budget, partition.tokens.used
        yield budget - used, partition.name, used, budget, f"{run.id} {partition.name}"
    if run.token_budget is not None:
        used = sum(each.tokens.used for each in runs.partitions_of(ledger, run.id))
        budget = run.token_budget
        yield budget - used, f"run {run.id}", used, budget, str(run.id)


def refuse_reason(ledger: Ledger, partition: PartitionView, reason: str | None) -> None:
    """Refuse a reason that no truncated answer has, before the limit is raised for it."""
    if reason is None or extending.truncated(ledger, partition.id, -1, 1, reason):
        return
    there = extending.reasons(ledger, partition.id)
    listed = ", ".join(f'"{each}"' for each in there)
    raise InputError(
        f'no truncated answer of {partition.name} has a flag or reason that contains "{reason}"',
        hint=f"There are {listed}" if there else "None has any; leave --reason out to take all",
    )
