"""Sends claimed samples and brings each to its verdict; owns the calls in flight.

Claims when there is room and wakes on {slot free, orders, link changed, tick}. A call ends up in
`ended`, from where the settler takes it; the dispatcher never touches the ledger or the disk.
"""

import asyncio
from array import array
from collections.abc import Awaitable, Callable
from random import Random

from app.clock import Clock
from app.core.extending import goes_on
from app.core.outcome import judge
from app.core.retry import backoff_s
from app.core.types import AttemptEnd, Claim, EndKind, Fail, Halt, Keep, PutBack
from app.events import AttemptFailed, Claimed, Observer
from app.sglang.protocol import generate_body
from app.sglang.stream import Answer
from app.worker.call import Call
from app.worker.link import ServerLink
from app.worker.plan import WorkerPlan
from app.worker.reading import text_of

# Slots that come free within this time are filled by one claim.
_CLAIM_GAP_S = 0.02
_ABORTS_AT_ONCE = 64


class Dispatcher:
    """The calls of one worker."""

    def __init__(
        self,
        plan: WorkerPlan,
        links: list[ServerLink],
        clock: Clock,
        random: Random,
        observer: Observer,
    ) -> None:
        self.calls: set[Call] = set()
        self.ended: list[Call] = []
        self.claim: Callable[[int], Awaitable[list[tuple[Claim, array[int]]]]]
        self.halt: Callable[[str], None]
        self.hurry: Callable[[], None]
        self.limit_tokens = plan.max_new_tokens  # the partition's; it may rise meanwhile
        self._plan = plan
        self._links = links
        self._clock = clock
        self._random = random
        self._observer = observer
        self._wake = asyncio.Event()
        self._may_claim = True
        self._held_back = False
        self._claiming = asyncio.Lock()
        self._tasks: dict[Call, asyncio.Task[None]] = {}
        for link in links:
            link.changed = self.wake

    def wake(self) -> None:
        self._wake.set()

    def stop_claiming(self) -> None:
        self._may_claim = False

    def hold_back(self, *, on: bool) -> None:
        """Claim nothing while disk or ledger do not take what has come, or while draining."""
        self._held_back = on

    def take_ended(self) -> list[Call]:
        taken, self.ended = self.ended, []
        return taken

    async def run(self) -> None:
        """Fill free slots until cancelled; calls live in a group of their own."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._fill(group)
                await self._clock.sleep(_CLAIM_GAP_S)

    async def _fill(self, group: asyncio.TaskGroup) -> None:
        room = sum(link.room for link in self._links)
        if not room or not self._may_claim or self._held_back:
            return
        async with self._claiming:
            claimed = await self.claim(room)
            for claim, prompt in claimed:
                link = self._links[0] if len(self._links) == 1 else max(self._links, key=_room)
                call = self._call(link, claim, prompt)
                if self._may_claim and link.room:
                    self._start(group, link, call)
                else:  # asked to stop, or the server was lost, while the ledger was asked
                    call.outcome = PutBack(charged=False, reason="withdrawn")
                    self.ended.append(call)
        if claimed:
            continued = sum(bool(claim.held) for claim, _ in claimed)
            self._observer(Claimed(n=len(claimed), n_continued=continued))

    def _call(self, link: ServerLink, claim: Claim, prompt: "array[int]") -> Call:
        def first_ids() -> None:
            call.first_ids_at_s = self._clock.monotonic()
            link.passed_trial()
            if claim.alone:
                self.hurry()  # others wait for the tick that says so

        call = Call(
            claim=claim,
            prompt=prompt,
            server=link.url,
            gen_id=self._plan.gen_id,
            started_at=self._clock.now(),
            answer=Answer(text_is_delta=link.facts.incremental, on_first_ids=first_ids),
            is_trial=link.is_on_trial,
        )
        return call

    def _start(self, group: asyncio.TaskGroup, link: ServerLink, call: Call) -> None:
        link.took()
        self.calls.add(call)
        self._tasks[call] = group.create_task(self._serve(call, link))

    async def _serve(self, call: Call, link: ServerLink) -> None:
        try:
            call.end = await self._send(call, link)
            await self._judge(call, link)
        except asyncio.CancelledError:
            # A verdict that stands (an answer that only waited for its text) is not undone.
            call.outcome = call.outcome or PutBack(charged=False, reason="withdrawn")
            raise
        finally:
            link.gave_back(was_trial=call.is_trial)
            self.calls.discard(call)
            self._tasks.pop(call, None)
            if call.outcome is not None:
                self.ended.append(call)
            self.wake()

    async def _send(self, call: Call, link: ServerLink) -> AttemptEnd:
        if len(call.claim.held) >= call.claim.max_new_tokens:
            # The cap was lowered below what is there: the answer is as long as it may be.
            return AttemptEnd(kind=EndKind.FINISHED, finish_reason={"type": "length"})
        body = generate_body(
            rid=call.claim.rid,
            prompt=call.prompt,
            held=call.claim.held,
            max_new_tokens=call.claim.max_new_tokens,
            sampling={**self._plan.sampling, **call.claim.sampling},
            stream_interval=self._plan.stream_interval,
        )
        call.sent_at_s = self._clock.monotonic()
        end = await link.client.generate(body, call.answer, self._plan.request_timeout_s)
        call.ended_at_s = self._clock.monotonic()
        return end

    async def _judge(self, call: Call, link: ServerLink) -> None:
        end = call.end
        if end is None:
            raise AssertionError("judged before its end")
        if call.is_withdrawn and _was_aborted(end):
            call.outcome = PutBack(charged=False, reason="withdrawn")
            return
        alive = await self._look_after(end, link)
        call.outcome = judge(
            end,
            call.asked(self._plan, server_is_untried=link.is_untried),
            server_alive=alive,
            delay_s=backoff_s(call.claim.charged, self._random, first_s=self._plan.backoff_first_s),
        )
        if goes_on(call.outcome, call.claim, self.limit_tokens, self._plan.sampling):
            call.outcome = PutBack(charged=False, reason="its max_new_tokens was raised")
        call.finished_at = self._clock.now()
        await self._after(call, link)

    async def _look_after(self, end: AttemptEnd, link: ServerLink) -> bool:
        """Draw from the end of a call what it says of the server; return whether that lives."""
        if end.kind is EndKind.BUSY:
            link.busy()
        elif end.kind is EndKind.REFUSED:
            link.refused(end.message)
            return False
        elif end.kind is EndKind.CUT:
            return await link.is_alive_after_cut()
        return True

    async def _after(self, call: Call, link: ServerLink) -> None:
        outcome, end = call.outcome, call.end
        if isinstance(outcome, Keep):
            link.passed_trial()
            call.text = await text_of(call, link.client)
            return
        if end is not None and end.kind in (EndKind.TIMEOUT, EndKind.BROKEN, EndKind.NO_IDS):
            await link.client.abort(call.claim.rid)
        if isinstance(outcome, Halt):
            self.halt(outcome.reason)
        elif isinstance(outcome, Fail) or (isinstance(outcome, PutBack) and outcome.charged):
            if call.is_trial:
                link.failed_trial()
            self._observer(
                AttemptFailed(
                    sample_id=call.claim.sample_id,
                    key=call.claim.key,
                    attempt=call.claim.attempt,
                    reason=outcome.reason,
                )
            )

    async def withdraw_all(self, wait_s: float) -> None:
        """Abort every call on its server by exact id, take what still comes, cancel the rest.

        Called after `stop_claiming`; waits for a claim under way, so that none is lost.
        """
        calls = list(self.calls)
        for call in calls:
            call.is_withdrawn = True
        tasks = [self._tasks[call] for call in calls]
        gate = asyncio.Semaphore(_ABORTS_AT_ONCE)
        clients = {link.url: link.client for link in self._links}

        async def abort(call: Call) -> None:
            async with gate:
                await clients[call.server].abort(call.claim.rid)

        async with asyncio.TaskGroup() as group:
            aborts = [group.create_task(abort(call)) for call in calls]
            if tasks:
                await asyncio.wait(tasks, timeout=wait_s)
            for task in (*tasks, *aborts):
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        async with self._claiming:
            pass  # a claim that waited for the ledger is given back by now


def _room(link: ServerLink) -> int:
    return link.room


def _was_aborted(end: AttemptEnd) -> bool:
    """Return whether a withdrawn call ended by that; a normal end may have won the race."""
    reason = end.finish_reason
    is_normal = isinstance(reason, dict) and reason.get("type") in ("stop", "length")
    return end.kind is not EndKind.FINISHED or not is_normal
