"""Delivers what the activity says to every target: in order per run, once, however long it takes.

Owns the step from a waiting row to its message and what a reply means for the row. One target never
waits for another, and nobody waits for a target: each has its own round, the ledger its own thread
here. A message whose reply could not be noted (a locked ledger) is noted before anything else is
sent; only a kill between reply and note makes a message come twice, under the same id.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import TypeVar

from app.clock import Clock
from app.core.format import one_line
from app.core.messages import (
    MAX_TRIES,
    Message,
    MessageEvent,
    end_sentence,
    pause_s,
    sentence_of,
)
from app.events import NotificationTried, Observer
from app.figures import total_counts
from app.ledger import deliveries, runs
from app.ledger.activity import Deed, add
from app.ledger.db import Ledger
from app.ledger.deliveries import FINISHED, STOPPED, WHO, Waiting
from app.notifying.targets import KINDS, Target, Told, send_tests
from app.notifying.webhook import Reply

EVERY_S = 1.0
GOODBYE_S = 10.0
_MOST_AT_ONCE = 50
T = TypeVar("T")


class Notifier:
    """See the module. Called on the event loop, but for `begin`, which blocks for a moment."""

    def __init__(
        self, ledger: Ledger, targets: Sequence[Target], clock: Clock, observer: Observer
    ) -> None:
        self.targets = tuple(targets)
        # where the pages are is known only once somebody listens
        self.page_address = ""
        self._ledger = ledger
        self._clock = clock
        self._observer = observer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="notifier")
        self._working: dict[str, asyncio.Task[None]] = {}
        self._unnoted: dict[str, tuple[Waiting, Reply]] = {}

    def begin(self) -> None:
        """Say in the ledger which targets are fed from now on. LedgerError."""
        shown = {target.kind: target.name for target in self.targets}
        deliveries.set_targets(self._ledger, shown, KINDS, self._clock.now())

    async def look(self, target: Target) -> None:
        """Deliver what is due for a target. A cancellation ends the waiting, not the delivery."""
        task = self._working.get(target.kind)
        if task is None or task.done():
            task = asyncio.create_task(self._deliver(target), name=target.name)
            self._working[target.kind] = task
        await asyncio.shield(task)

    async def close(self) -> None:
        """Deliver what is due once more, then leave; a target that is slow is left alone."""
        await asyncio.gather(*(self._last_look(each) for each in self.targets))
        self._thread.shutdown()

    async def _last_look(self, target: Target) -> None:
        task = self._working.get(target.kind)
        rest = asyncio.create_task(self._after(task, target))
        await asyncio.wait({rest}, timeout=GOODBYE_S)
        rest.cancel()
        await asyncio.gather(rest, *([task] if task else []), return_exceptions=True)

    async def _after(self, task: "asyncio.Task[None] | None", target: Target) -> None:
        try:
            if task is not None:
                await asyncio.wait({task})
            await self._deliver(target)
        finally:
            if task is not None:
                task.cancel()

    async def test(self, who: str) -> tuple[Told, ...]:
        """Send a test message to all targets, beside what waits; note who asked for it."""
        now = self._clock.now()
        told = await send_tests(self.targets, now, self.page_address)
        said = "; ".join(each.sentence for each in told)
        deed = Deed(who=who, event="notification test", detail=said)
        await self._in_thread(partial(add, self._ledger, deed, now))
        return told

    async def _deliver(self, target: Target) -> None:
        await self._note_what_is_left(target)
        await self._in_thread(partial(deliveries.enqueue, self._ledger, target.kind))
        for _ in range(_MOST_AT_ONCE):
            found = await self._in_thread(partial(self._next, target))
            if found is None:
                return
            waiting, message = found
            reply = await target.send(message)
            self._unnoted[target.kind] = (waiting, reply)
            await self._note_what_is_left(target)

    async def _note_what_is_left(self, target: Target) -> None:
        left = self._unnoted.get(target.kind)
        if left is not None:
            await self._in_thread(partial(self._note, target, *left))
            del self._unnoted[target.kind]

    def _next(self, target: Target) -> tuple[Waiting, Message] | None:
        waiting = deliveries.next_due(self._ledger, target.kind, self._clock.now())
        return None if waiting is None else (waiting, self._message(waiting))

    def _message(self, waiting: Waiting) -> Message:
        event, kind, sentence = _told_of(waiting)
        if event in (MessageEvent.FINISHED, MessageEvent.STOPPED):
            run = runs.get_run(self._ledger, waiting.run_id)
            parts = runs.partitions_of(self._ledger, waiting.run_id)
            reason = waiting.detail if event is MessageEvent.STOPPED else ""
            counts = total_counts([each.counts for each in parts])
            sentence = end_sentence(event, counts, run.output_dir, reason, one_line(run.name))
        page = f"{self.page_address}/runs/{waiting.run_id}" if self.page_address else ""
        return Message(
            id=str(waiting.activity_id),
            event=event,
            kind=kind,
            sentence=sentence,
            at=waiting.at,
            since=waiting.began_at or waiting.at,
            run=one_line(waiting.run),
            run_id=waiting.run_id,
            partition=waiting.partition,
            page=page,
        )

    def _note(self, target: Target, waiting: Waiting, reply: Reply) -> None:
        """Say what has come of it; nothing, if the row no longer waits."""
        now = self._clock.now()
        n_tries = waiting.n_tries + 1
        pause = pause_s(n_tries, reply.retry_after_s)
        if reply.is_ok:
            is_mine = deliveries.sent(self._ledger, waiting, reply.said)
        elif pause is not None:
            again_at = now + timedelta(seconds=pause)
            is_mine = deliveries.put_off(self._ledger, waiting, reply.said, again_at)
        else:
            detail = (
                f'{target.name} was not told of "{waiting.event}" in {MAX_TRIES} tries, the last:'
                f" {reply.said}; mend it and try: longwatch notify-test"
            )
            deed = Deed(
                who=WHO, event="notification given up", detail=detail, run_id=waiting.run_id
            )
            is_mine = deliveries.give_up(self._ledger, waiting, reply.said, deed, now)
        if is_mine:
            self._observer(
                NotificationTried(
                    target=target.name,
                    entry_id=waiting.activity_id,
                    n_tries=n_tries,
                    is_ok=reply.is_ok,
                    said=reply.said,
                )
            )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _told_of(waiting: Waiting) -> tuple[MessageEvent, str, str]:
    """Return what an entry tells: event, kind, sentence."""
    if waiting.event == STOPPED:
        return MessageEvent.STOPPED, "stopped", ""
    if waiting.detail == FINISHED:
        return MessageEvent.FINISHED, "finished", ""
    event = MessageEvent.END if waiting.is_end else MessageEvent.BEGIN
    return event, waiting.event, sentence_of(waiting.detail)
