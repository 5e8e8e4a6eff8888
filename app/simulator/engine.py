"""Paces the batch in real time: `time_factor` simulated seconds pass per real second.

Owns the one timer and the orders submit, abort, freeze; the rules are in `batch`.
Invariant: while nothing runs or waits, or while frozen, there is no timer, hence no work at all.
"""

import asyncio

from app.clock import Clock
from app.simulator.batch import QUEUE_FULL, Batch
from app.simulator.counters import Counters, ServerFigures
from app.simulator.jobs import Job
from app.simulator.settings import SimulatorSettings

LONGEST_WAKE_S = 1.0
THROUGHPUT_WINDOW_S = 0.5


class Engine:
    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        counters: Counters,
        figures: ServerFigures,
    ) -> None:
        self.batch = Batch(settings, clock, counters, figures)
        self.settings = settings
        self.frozen = False
        self.closed = False
        self.throughput_tokens_per_s = 0.0
        self._clock = clock
        self._counters = counters
        self._figures = figures
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._anchor = (clock.monotonic(), 0.0)
        self._window = (clock.monotonic(), 0)
        self._late_aborts: list[Job] = []

    @property
    def idle(self) -> bool:
        """Return whether nothing will happen until the next request."""
        return self._timer is None

    def submit(self, job: Job) -> None:
        job.submitted_at = self._clock.monotonic()
        if self.settings.instant and not self.frozen:
            self.batch.answer_at_once(job)
            return
        self._advance()
        limit = self.settings.max_queued
        if limit is not None and len(self.batch.queue) >= limit and self._stays_full(limit):
            self.batch.end(job, dict(QUEUE_FULL), out_of_queue=True)
            return
        self.batch.queue.append(job)
        self._publish()
        self._arm(0.0)

    def abort(self, job: Job, *, left: bool = False) -> None:
        """End a job early with what it has; a hung scheduler hears of it when it wakes.

        `left` says that the client is gone: then the place is free at once, frozen or not.
        """
        if job.finished:
            return
        if self.frozen and not left:
            self._late_aborts.append(job)
            return
        self._advance()  # it may end by itself in this very moment
        if id(job) in self.batch.running:
            self.batch.leave(job)
            reason = {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
            self.batch.end(job, reason)
        elif not job.finished and job in self.batch.queue:
            self.batch.queue.remove(job)
            reason = {"type": "abort", "message": "Abort in waiting queue"}
            self.batch.end(job, reason, out_of_queue=True)
        else:
            return
        self._counters.aborts += 1
        self._publish()
        self._arm(0.0)

    def freeze(self) -> None:
        self._advance()
        self.frozen = True
        self._disarm()

    def unfreeze(self) -> None:
        if not self.frozen:
            return
        self.frozen = False
        self._anchor = (self._clock.monotonic(), self.batch.now_s)
        late, self._late_aborts = self._late_aborts, []
        for job in late:
            self.abort(job)
        self._arm(0.0)

    def change(self, settings: SimulatorSettings) -> None:
        self._advance()
        self._anchor = (self._clock.monotonic(), self.batch.now_s)
        self.settings = self.batch.settings = settings
        self._disarm()
        self._arm(0.0)

    def close(self) -> None:
        self.closed = True
        self._disarm()
        self.batch.running.clear()
        self.batch.queue.clear()
        self._publish()

    def _stays_full(self, limit: int) -> bool:
        if not self.frozen:
            self.batch.admit()
        return len(self.batch.queue) >= limit

    def _target(self) -> float:
        real, simulated = self._anchor
        return simulated + (self._clock.monotonic() - real) * self.settings.time_factor

    def _advance(self) -> None:
        if not self.frozen:
            self.batch.advance(self._target())
            self._publish()

    def _arm(self, delay_s: float) -> None:
        due = self._loop.time() + delay_s
        if self.frozen or self.closed or (self._timer is not None and self._timer_due <= due):
            return
        self._disarm()
        self._timer_due = due
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        if self.settings.instant:
            while self.batch.queue:
                self.batch.answer_at_once(self.batch.queue.popleft())
        self._advance()
        self._measure()
        if self.batch.running or self.batch.queue:
            self._arm(self._next_wake_s())
        elif self.throughput_tokens_per_s:
            self._arm(THROUGHPUT_WINDOW_S)

    def _next_wake_s(self) -> float:
        simulated = self.batch.steps_to_news() * self.batch.step_s()
        wake_s = (self.batch.now_s + simulated - self._target()) / self.settings.time_factor
        return min(LONGEST_WAKE_S, max(self.settings.shortest_wake_s, wake_s))

    def _measure(self) -> None:
        now = self._clock.monotonic()
        since, tokens = self._window
        if now - since >= THROUGHPUT_WINDOW_S:
            made = self._figures.decode_tokens
            self.throughput_tokens_per_s = (made - tokens) / (now - since)
            self._window = (now, made)

    def _publish(self) -> None:
        self._counters.running = len(self.batch.running)
        self._counters.queued = len(self.batch.queue)
