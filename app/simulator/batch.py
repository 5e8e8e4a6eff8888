"""The model of the scheduler: a running batch over a KV pool, in simulated seconds.

Owns queue, running set, admission, retraction and the steps; has no timer and no event loop.
A decode step of B requests that hold V tokens takes t0 + a*B + b*V seconds and gives each one id.
Invariant: `used_tokens` is the sum of prompt and made tokens of the running jobs.
"""

import heapq
from collections import deque
from itertools import count
from typing import Any

from app.clock import Clock
from app.simulator.counters import Counters, ServerFigures
from app.simulator.jobs import Job
from app.simulator.prefix_cache import PrefixCache
from app.simulator.settings import SimulatorSettings

CLIP_TOKENS = 4096
START_RATIO, LEAST_RATIO, RATIO_STEPS = 0.7, 0.098, 600
RETRACT_SPARE_TOKENS = 20
QUEUE_CHECK_STEPS = 16
QUEUE_FULL: dict[str, Any] = {
    "type": "abort",
    "status_code": 503,
    "message": "The request queue is full.",
}

_Entry = tuple[int, int, int, Job]  # step, tie-breaker, epoch, job


def _drop_dead(heap: list[_Entry]) -> None:
    while heap and heap[0][2] != heap[0][3].epoch:
        heapq.heappop(heap)


class Batch:
    def __init__(
        self,
        settings: SimulatorSettings,
        clock: Clock,
        counters: Counters,
        figures: ServerFigures,
    ) -> None:
        self.settings = settings
        self.cache = PrefixCache()
        self.running: dict[int, Job] = {}
        self.queue: deque[Job] = deque()
        self.used_tokens = 0
        self.steps = 0
        self.ratio = START_RATIO
        self.now_s = 0.0
        self._clock = clock
        self._counters = counters
        self._figures = figures
        self._finishes: list[_Entry] = []
        self._dues: list[_Entry] = []
        self._tie = count()

    def step_s(self) -> float:
        s = self.settings
        running = s.step_per_request_s * len(self.running)
        return s.step_base_s + running + s.step_per_kv_token_s * self.used_tokens

    def steps_to_news(self) -> int:
        """Return after how many steps somebody will have something to hear."""
        ahead = [heap[0][0] - self.steps for heap in (self._finishes, self._dues) if heap]
        steps = max(1, min(ahead, default=1))
        return min(steps, QUEUE_CHECK_STEPS) if self.queue else steps

    def advance(self, target_s: float) -> None:
        """Run whole steps up to `target_s`; ahead of it by one prefill at most."""
        while self.now_s < target_s:
            if not self.running:
                self.admit()
                if not self.running:
                    self.now_s = max(self.now_s, target_s)
                    return
                continue
            possible = int((target_s - self.now_s) / self.step_s())
            if possible < 1:
                return
            self.admit()
            if self.settings.kv_tokens - self.used_tokens < len(self.running):
                self._retract()
            self._run_steps(possible)

    def admit(self) -> None:
        if not self.queue or len(self.running) >= self.settings.max_running:
            return
        room = self.settings.kv_tokens - self.used_tokens - self._reserve_tokens()
        prefill = 0
        while self.queue and len(self.running) < self.settings.max_running:
            job = self.queue[0]
            need = job.prompt_tokens + job.done
            left = job.limit_tokens - job.done
            hold = need + (left if job.keeps_to_limit else min(left, CLIP_TOKENS))
            if hold > room and self.running:
                break
            self.queue.popleft()
            room -= hold
            prefill += self._start(job, need)
        self.now_s += prefill / self.settings.prefill_tokens_per_s

    def leave(self, job: Job) -> None:
        """Take a running job out of the batch; it keeps what it has made."""
        job.done = job.made(self.steps)
        del self.running[id(job)]
        self.used_tokens -= job.prompt_tokens + job.done
        job.joined_step = None
        job.epoch += 1

    def end(self, job: Job, reason: dict[str, Any], *, out_of_queue: bool = False) -> None:
        if not out_of_queue:
            room = self.settings.kv_tokens - self.used_tokens
            self.cache.keep(job.seed, job.prompt_tokens + job.done, room)
            self._figures.finish(
                stream=job.stream, prompt_tokens=job.prompt_tokens, completion_tokens=job.done
            )
        job.out_of_queue = out_of_queue
        job.finish_reason = reason
        self._release(job, job.done)

    def answer_at_once(self, job: Job) -> None:
        job.admitted_at = self._clock.monotonic()
        job.done = job.total
        self._counters.generated_tokens += job.total
        self._figures.decode_tokens += job.total
        self._figures.prefill_tokens += job.prompt_tokens
        self.end(job, job.plan.finish_reason)

    # ---- steps ----

    def _run_steps(self, possible: int) -> None:
        batch = len(self.running)
        _drop_dead(self._finishes)
        room_steps = (self.settings.kv_tokens - self.used_tokens) // batch
        steps = min(possible, self._finishes[0][0] - self.steps, room_steps)
        if self.queue:
            steps = min(steps, QUEUE_CHECK_STEPS)
        steps = max(1, steps)
        growth_s = self.settings.step_per_kv_token_s * batch * steps / 2
        self.now_s += steps * (self.step_s() + growth_s)
        self.steps += steps
        self.used_tokens += batch * steps
        self._counters.generated_tokens += batch * steps
        self._figures.decode_tokens += batch * steps
        fall = steps * (START_RATIO - LEAST_RATIO) / RATIO_STEPS
        self.ratio = max(LEAST_RATIO, self.ratio - fall)
        self._finish_due()
        self._release_due()

    def _finish_due(self) -> None:
        while self._finishes and self._finishes[0][0] <= self.steps:
            _, _, epoch, job = heapq.heappop(self._finishes)
            if epoch == job.epoch:
                self.leave(job)
                self.end(job, job.plan.finish_reason)

    def _release_due(self) -> None:
        """Let each stream hear of the ids up to its latest event, however many steps were run."""
        while self._dues and self._dues[0][0] <= self.steps:
            step, _, epoch, job = heapq.heappop(self._dues)
            if epoch != job.epoch:
                continue
            self._note_first(job)
            if job.stream:
                self._release(job, job.made(step))
                self._schedule_release(job)
        _drop_dead(self._dues)

    def _note_first(self, job: Job) -> None:
        if job.first_at is None:
            job.first_at = self._clock.monotonic()
            self._figures.first_token(job.first_at - job.submitted_at)

    def _release(self, job: Job, due: int) -> None:
        if due:
            self._note_first(job)
        job.due = due
        job.wake()

    def _schedule_release(self, job: Job) -> None:
        """Plan the next event of a stream: the first id at once, then every interval."""
        if job.joined_step is None or (job.due == 0 and job.first_at is not None):
            return
        target = job.due + job.interval_tokens if job.due else 1
        if target < job.total:
            step = job.joined_step + max(1, target - job.done)
            heapq.heappush(self._dues, (step, next(self._tie), job.epoch, job))

    # ---- admission and retraction ----

    def _reserve_tokens(self) -> float:
        clipped = whole = 0
        for job in self.running.values():
            left = job.limit_tokens - job.made(self.steps)
            if job.keeps_to_limit:
                whole += left
            else:
                clipped += min(left, CLIP_TOKENS)
        return whole + clipped * self.ratio

    def _start(self, job: Job, need_tokens: int) -> int:
        """Put a job into the batch; return how many tokens have to be prefilled."""
        cached = self.cache.hit(job.seed, need_tokens) if self.settings.prefix_cache else 0
        if job.admitted_at is None:
            job.admitted_at = self._clock.monotonic()
            job.cached_tokens = cached
        self._figures.cached_tokens += cached
        self._figures.prefill_tokens += need_tokens - cached
        if job.done >= job.total:
            self.end(job, job.plan.finish_reason)
            return need_tokens - cached
        job.joined_step = self.steps
        self.running[id(job)] = job
        self.used_tokens += need_tokens
        finish = self.steps + job.total - job.done
        heapq.heappush(self._finishes, (finish, next(self._tie), job.epoch, job))
        self._schedule_release(job)
        return need_tokens - cached

    def _retract(self) -> None:
        """Push those with the fewest output tokens back to the head of the queue."""
        order = sorted(self.running.values(), key=lambda j: (-j.made(self.steps), j.prompt_tokens))
        limit = self.settings.max_queued
        while len(order) > 1 and self._short_of_tokens(len(order)):
            job = order.pop()
            self.leave(job)
            job.retractions += 1
            self._counters.retractions += 1
            self._figures.retractions += 1
            self._figures.retracted_input_tokens += job.prompt_tokens
            self._figures.retracted_output_tokens += job.done
            if limit is not None and len(self.queue) >= limit:
                self.end(job, dict(QUEUE_FULL), out_of_queue=True)
            else:
                self.queue.appendleft(job)
        made = sum(job.made(self.steps) for job in order)
        asked = sum(job.limit_tokens for job in order) + 1
        self.ratio = min(1.0, (made + RETRACT_SPARE_TOKENS * len(order)) / asked)

    def _short_of_tokens(self, running: int) -> bool:
        return self.settings.kv_tokens - self.used_tokens < RETRACT_SPARE_TOKENS * running
