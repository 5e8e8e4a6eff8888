"""What an order to extend has done: counted, noted once in the activity, and said in a sentence."""

from collections import Counter
from dataclasses import dataclass, field

from app.controls import Done
from app.core.extending import Stay, stays_in_words
from app.core.format import plural
from app.core.states import RunState
from app.core.views import PartitionView, RunView
from app.errors import ConflictError
from app.ledger import activity, runs
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.orders import Change, Order


@dataclass(slots=True)
class Told:
    """How many answers go on, how many tokens they hold, and how many stay for which reason.

    `raised`: the change of the limit, None if it was that high already. `n_bounded`: how many
    prompts leave less room than the limit in the server's context.
    """

    limit_tokens: int
    raised: Change | None = None
    n_bounded: int = 0
    n_going: int = 0
    held_tokens: int = 0
    stays: Counter[Stay] = field(default_factory=Counter)

    @property
    def n_stays(self) -> int:
        return self.stays.total()


def tell(ledger: Ledger, run: RunView, partition: PartitionView, order: Order, told: Told) -> Done:
    """Note what was done, and say it; ConflictError if nothing was."""
    if told.raised is None and not told.n_going:
        raise _nothing(partition, told)
    detail = _detail(partition.name, told)
    deed = Deed(
        who=order.who,
        event="extend",
        detail=detail,
        run_id=run.id,
        partition_id=partition.id,
    )
    activity.add(ledger, deed, order.now)
    changes = tuple(_changes(ledger, run, partition, told))
    head = "; ".join(f"{one.target}: {one.what} {one.old} -> {one.new}" for one in changes)
    return Done(
        run_id=run.id, changes=changes, sentence=f'run {run.id} "{run.name}": {head}; {detail}'
    )


def _nothing(partition: PartitionView, told: Told) -> ConflictError:
    because = f": {stays_in_words(told.stays)}" if told.n_stays else ""
    return ConflictError(
        f"{partition.name} has max_new_tokens {told.limit_tokens:,} already, and no truncated"
        f" answer of it can go on{because}",
        hint=f"Name a number above {told.limit_tokens:,}",
    )


def _detail(name: str, told: Told) -> str:
    limit = told.limit_tokens
    verb = "goes" if told.n_going == 1 else "go"
    said = [
        f"{plural(told.n_going, 'truncated answer')} of {name} {verb} on up to {limit:,} tokens,"
        f" from the {told.held_tokens:,} they have"
        if told.n_going
        else f"no truncated answer of {name} goes on; the limit is for those still to come"
    ]
    if told.n_bounded:
        leave = "prompt leaves" if told.n_bounded == 1 else "prompts leave"
        said.append(f"{told.n_bounded:,} {leave} less room than that in the server's context")
    if told.n_stays:
        said.append(stays_in_words(told.stays))
    return "; ".join(said)


def _changes(ledger: Ledger, run: RunView, partition: PartitionView, told: Told) -> list[Change]:
    changes = [] if told.raised is None else [told.raised]
    if told.n_going:
        going = Change(
            target=partition.name,
            what="extend",
            old=f"{told.n_going + told.n_stays:,} truncated",
            new=f"{told.n_going:,} pending again",
        )
        changes.append(going)
    is_now = runs.get_run(ledger, run.id).state
    if run.state is RunState.FINISHED and is_now is RunState.RUNNING:
        changes.append(Change(target="run", what="state", old=run.state, new=is_now))
    return changes
