"""The worker of one partition: claims samples, sends them, settles what has come, once per tick.

A class with `run()`; a process is only packaging (`process.py`). Invariant: when `run` returns,
no task is left, no request of ours is known to run on a server, and nothing in the ledger is
still running in this worker's name (unless the ledger itself could not be written).
"""

import asyncio
from datetime import datetime
from random import Random

from app.clock import Clock
from app.core.types import Keep, Orders, PutBack
from app.errors import DisownedError, LedgerError
from app.events import Observer, SettleDelayed, Ticked, WorkerLeft
from app.ledger.claims import Wish
from app.ledger.db import Ledger
from app.worker.call import Call
from app.worker.dispatch import Dispatcher
from app.worker.files_limit import clamp_to_open_files
from app.worker.journal import Claimed, State
from app.worker.journal_thread import JournalThread
from app.worker.link import LinkState, ServerLink
from app.worker.plan import WorkerPlan
from app.worker.reserve import Reserve

_ABORT_WAIT_S = 0.8
# So many ended calls may wait for disk or ledger, at least, before no more are claimed.
_MIN_BACKLOG = 256


class Worker:
    """See the module. `hurry()` looks at the orders now, `leave()` asks it to stop."""

    def __init__(
        self,
        ledger: Ledger,
        plan: WorkerPlan,
        links: list[ServerLink],
        clock: Clock,
        random: Random,
        observer: Observer,
    ) -> None:
        self.plan = plan
        self.exit_reason = ""
        self.halt_reason = ""
        self._links = links
        self._clock = clock
        self._random = random
        self._observer = observer
        self._journal = JournalThread(ledger, plan)
        self._dispatcher = Dispatcher(plan, links, clock, random, observer)
        self._dispatcher.claim = self._claim
        self._dispatcher.halt = self.halt
        self._dispatcher.hurry = self.hurry
        self._ended: list[Call] = []
        self._orders = Orders(desired="work", shares={})
        self._hurry = asyncio.Event()
        self._leaving = asyncio.Event()
        self._skip_grace = asyncio.Event()
        self._reserve = Reserve(plan.max_new_tokens)
        self._notice = ""
        self._problem = ""
        self._last_token_at: datetime | None = None
        self._disowned = False
        self._n_put_back = 0

    def hurry(self) -> None:
        """Tick now: orders may have changed."""
        self._hurry.set()

    def leave(self, reason: str) -> None:
        """Stop: checkpoint what runs, put it back, go. A second call skips the grace time."""
        if self._leaving.is_set():
            self._skip_grace.set()
        self.exit_reason = self.exit_reason or reason
        self._dispatcher.stop_claiming()
        self._leaving.set()
        self._hurry.set()

    def halt(self, reason: str) -> None:
        """Stop because nobody can be served: the partition is to be paused with this reason."""
        self.halt_reason = self.halt_reason or reason
        self.leave(reason)

    async def run(self) -> None:
        """Work until there is nothing left to want of this worker."""
        self._reserve.begin(await self._journal.recent_lengths())
        try:
            async with asyncio.TaskGroup() as group:
                watches = [group.create_task(link.watch()) for link in self._links]
                dispatcher = group.create_task(self._dispatcher.run())
                await self._tick_until_left()
                await self._withdraw()
                dispatcher.cancel()
                for watch in watches:
                    watch.cancel()
        finally:
            self._last_words()
        self._observer(
            WorkerLeft(
                worker_id=self.plan.worker_id,
                partition=self.plan.partition,
                reason=self.exit_reason,
                put_back=self._n_put_back,
            )
        )

    async def _tick_until_left(self) -> None:
        while not self._leaving.is_set():
            await self._tick()
            if self._orders.desired == "stop":
                self.leave("ordered to stop")
            elif self._orders.desired == "drain" and not (
                self._dispatcher.calls or self._dispatcher.ended or self._ended
            ):
                self.leave("drained")
            refusal = next((link.refusal for link in self._links if link.refusal), "")
            if refusal:
                self.halt(refusal)
            await self._pause_between_ticks()

    async def _pause_between_ticks(self) -> None:
        try:
            async with asyncio.timeout(self.plan.tick_s):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    async def _tick(self) -> None:
        """Record one tick; trouble with disk or ledger is a state that is tried again."""
        fresh = self._dispatcher.take_ended()
        self._ended += fresh
        ended = list(self._ended)
        gains = [(call, gain) for call in self._dispatcher.calls if (gain := call.gain())]
        if gains or any(call.whole_gain() for call in fresh):
            self._last_token_at = self._clock.now()
        try:
            written = await self._journal.record(ended, gains, self._state(), self._clock.now())
        except DisownedError as error:
            self._disowned = True
            self.leave(str(error))
            return
        except LedgerError as error:
            self._trouble(str(error))
            return
        self._ended = [call for call in ended if isinstance(call.outcome, Keep) and not call.line]
        if written.storage_problem:
            self._trouble(written.storage_problem)
        else:
            self._problem = ""
        self._reserve.learn(call for call in ended if call not in self._ended)
        self._obey(written.orders)
        tokens = sum(gain.n_tokens for _, gain in gains)
        self._observer(
            Ticked(
                n_settled=len(ended) - len(self._ended),
                gained_tokens=tokens,
                in_flight=len(self._dispatcher.calls),
            )
        )

    def _trouble(self, reason: str) -> None:
        if not self._problem:  # told once, not each time that the free space in its words differs
            self._observer(SettleDelayed(reason=reason, n_waiting=len(self._ended)))
        self._problem = reason
        self._dispatcher.hold_back(on=True)

    def _obey(self, orders: Orders) -> None:
        self._orders = orders
        self._dispatcher.limit_tokens = orders.max_new_tokens
        for link in self._links:
            link.limit = orders.shares.get(link.url, 0)
        wanted = sum(link.limit for link in self._links)
        allowed, files_notice = clamp_to_open_files(wanted)
        notices = [files_notice, *(link.notice for link in self._links)]
        self._notice = "; ".join(notice for notice in notices if notice)
        if allowed < wanted:
            for link in self._links:
                link.limit = link.limit * allowed // wanted
        backlog = len(self._ended) > max(_MIN_BACKLOG, 2 * wanted)
        is_draining = orders.desired == "drain"
        self._dispatcher.hold_back(on=bool(self._problem) or backlog or is_draining)
        self._dispatcher.wake()

    async def _claim(self, n: int) -> list[Claimed]:
        """Claim up to n samples; none while the ledger cannot be written."""
        wish = Wish(
            worker_id=self.plan.worker_id,
            n=n,
            reserved_tokens=self._reserved_tokens(),
            reservation=self._reserve.for_one,
            margin=self._reserve.margin,
            gen_id=self.plan.gen_id,
            sampling=self.plan.sampling,
        )
        try:
            return await self._journal.claim(wish, self._clock.now(), self._random)
        except DisownedError as error:
            self._disowned = True
            self.leave(str(error))
        except LedgerError as error:
            self._trouble(str(error))
        return []

    def _reserved_tokens(self) -> int:
        unsettled = [*self._ended, *self._dispatcher.ended]
        return self._reserve.tokens(self._dispatcher.calls, unsettled)

    def _state(self) -> State:
        away = [link.away_since for link in self._links if link.state is LinkState.AWAY]
        is_waiting = len(away) == len(self._links)
        since = min((moment for moment in away if moment), default=None) if is_waiting else None
        name = "draining" if self._orders.desired != "work" else "working"
        return State(
            state="waiting" if is_waiting else name,
            notice=self._notice,
            in_flight=len(self._dispatcher.calls),
            reserved_tokens=self._reserved_tokens(),
            last_token_at=self._last_token_at,
            waiting_since=since,
        )

    async def _withdraw(self) -> None:
        """Let calls end within the grace time, then abort them on the server by exact id."""
        self._dispatcher.stop_claiming()
        if self.plan.stop_grace_s and not self.halt_reason and not self._disowned:
            await self._grace()
        await self._dispatcher.withdraw_all(_ABORT_WAIT_S)

    async def _grace(self) -> None:
        deadline = self._clock.monotonic() + self.plan.stop_grace_s
        while self._dispatcher.calls and self._clock.monotonic() < deadline:
            if self._skip_grace.is_set():
                return
            await self._tick()
            await self._pause_between_ticks()

    def _last_words(self) -> None:
        """Settle the rest and deregister, behind whatever is still being written."""
        self._ended += self._dispatcher.take_ended()
        if self._disowned:
            self._journal.abandon()
            return
        self._n_put_back = sum(isinstance(call.outcome, PutBack) for call in self._ended)
        reason = self.halt_reason or self.exit_reason
        self._journal.close(self._ended, self._state(), reason, self._clock.now())
