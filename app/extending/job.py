"""The order to extend: a partition's limit goes up, and its truncated answers go on.

Owns in which batches that is done, and what is tried again. Memory is bounded by a batch. Killed at
any instant, the order has done what it had got to, and given again it does the rest; that is why
the limit which a partition has already is taken, as long as an answer waits for it. Runs in a
thread: it may read gigabytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.controls import Done
from app.core.extending import Stay, Truncated, why_it_stays
from app.core.prompt_limits import PromptLimits
from app.core.spec import LengthPolicy, RunSpec, from_json
from app.core.types import SampleId
from app.core.views import PartitionView, RunView
from app.extending.lines import Reader
from app.extending.refusing import limits_now, named, refuse, refuse_reason
from app.extending.telling import Told, tell
from app.files.sealed import LineSource
from app.ledger import extending
from app.ledger.db import Ledger
from app.ledger.extending import Cut, Going
from app.ledger.orders import Order

_PAGE = 200
# So many tokens are in memory, and in one transaction, at most, but for one answer's.
_BATCH_TOKENS = 1_000_000
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Longer:
    """What is wanted: which partition's answers, up to how many tokens.

    `reason`: only answers whose flags or reason contain it, such as "thinking not closed".
    """

    partition: str
    max_new_tokens: int
    reason: str | None = None


def extend(ledger: Ledger, run: RunView, wanted: Longer, *, who: str, now: datetime) -> Done:
    """Raise the partition's limit and let its truncated answers go on from where they stopped.

    InputError and ConflictError say why it is refused, and have changed nothing.
    """
    spec = from_json(run.spec_json)
    partition = named(ledger, run, wanted.partition)
    limits = limits_now(ledger, spec)
    refuse(ledger, run, spec, partition, limits, wanted.max_new_tokens)
    refuse_reason(ledger, partition, wanted.reason)
    order = Order(run_id=run.id, who=who, now=now)
    told = Told(limit_tokens=wanted.max_new_tokens)
    room = extending.Room(
        limit_tokens=wanted.max_new_tokens,
        usable_tokens=limits.usable_tokens,
        policy=spec.length_policy,
    )
    told.raised, told.n_bounded = extending.raise_limit(ledger, order, partition.id, room)
    job = _Job(
        ledger=ledger,
        order=order,
        spec=spec,
        gen_id=run.gen_id,
        partition=partition,
        limits=limits,
        wanted=wanted,
        told=told,
    )
    job.carry_out()
    return tell(ledger, run, partition, order, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One pass over the truncated answers of a partition, in input order; fills `told`."""

    ledger: Ledger
    order: Order
    spec: RunSpec
    gen_id: str
    partition: PartitionView
    limits: PromptLimits
    wanted: Longer
    told: Told

    def carry_out(self) -> None:
        with LineSource() as source:
            reader = Reader(
                source=source,
                gen_id=self.gen_id,
                end_ids=extending.end_ids(self.ledger, self.partition.id) or None,
                sampling=self.spec.sampling,
            )
            for batch in self._batches(reader):
                self._move(batch)

    def _batches(self, reader: Reader) -> Iterator[list[Going]]:
        batch: list[Going] = []
        n_tokens = 0
        for cut in self._cuts():
            going = self._judged(cut, reader)
            if isinstance(going, Stay):
                self.told.stays[going] += 1
            elif going is not None:
                batch.append(going)
                n_tokens += going.held_tokens
            if n_tokens >= _BATCH_TOKENS or len(batch) >= _PAGE:
                yield batch
                batch, n_tokens = [], 0
        yield batch

    def _cuts(self) -> Iterator[Cut]:
        after = -1
        while page := self._page(after, _PAGE):
            yield from page
            after = page[-1].position

    def _page(self, after: int, n: int) -> list[Cut]:
        return extending.truncated(self.ledger, self.partition.id, after, n, self.wanted.reason)

    def _judged(self, cut: Cut, reader: Reader) -> Going | Stay | None:
        """Return what becomes of an answer, None if it is no longer truncated.

        A line that cannot be read may just have been moved by a seal: its place is asked again.
        """
        stays = self._why_it_stays(cut)
        if stays is not None:
            return stays
        found = reader.going(cut)
        if found is not Stay.UNREADABLE:
            return found
        reader.source.close()  # a file opened before is perhaps not the one that stands there now
        again = self._again(cut)
        return None if again is None else reader.going(again)

    def _again(self, cut: Cut) -> Cut | None:
        found = self._page(cut.position - 1, 1)
        return found[0] if found and found[0].sample_id == cut.sample_id else None

    def _why_it_stays(self, cut: Cut) -> Stay | None:
        answer = Truncated(
            prompt_tokens=cut.prompt_tokens,
            output_tokens=cut.output_tokens,
            own_limit_tokens=cut.own_limit_tokens,
            flags=cut.flags,
            sampling={**self.spec.sampling, **cut.sampling},
        )
        return why_it_stays(
            answer,
            self.wanted.max_new_tokens,
            self.limits.usable_tokens,
            rejects=self.spec.length_policy is LengthPolicy.REJECT,
        )

    def _move(self, batch: Sequence[Going]) -> None:
        """Move a batch; what a seal has moved under it meanwhile is looked for and tried again."""
        left = list(batch)
        for _ in range(_TRIES):
            if not left:
                return
            missed = set(extending.go_on(self.ledger, self.order, self.partition.id, left))
            moved = [going for going in left if going.cut.sample_id not in missed]
            self.told.n_going += len(moved)
            self.told.held_tokens += sum(going.held_tokens for going in moved)
            left = self._placed_anew(left, missed)

    def _placed_anew(self, batch: Sequence[Going], missed: set[SampleId]) -> list[Going]:
        """Return those missed that are truncated still, with their line's place as it is now."""
        pairs = [
            (going, self._again(going.cut)) for going in batch if going.cut.sample_id in missed
        ]
        return [replace(going, cut=cut) for going, cut in pairs if cut is not None]
