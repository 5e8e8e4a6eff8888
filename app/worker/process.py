"""A worker as a process: signals, parent watch, clients, exit code. Packaging, no decisions.

SIGTERM: leave (a second one skips the grace time). SIGUSR1: look at the orders now. SIGINT and
SIGHUP are ignored: they go to the whole process group and are the service's to handle. A worker
whose parent is gone leaves as at a pause.
"""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from random import Random, SystemRandom

import uvloop

from app.clock import Clock, SystemClock
from app.core.types import WorkerId
from app.events import Observer, WorkerStarted
from app.ledger.db import Ledger
from app.seams import arm
from app.settings import Settings
from app.sglang.client import ServerClient
from app.worker.link import ServerLink
from app.worker.plan import WorkerPlan, load_plan
from app.worker.worker import Worker

EXIT_OK = 0
EXIT_HALTED = 3


def main(settings: Settings, worker_id: int, parent: int, observer: Observer) -> int:
    """Run the registered worker to its end; return the process's exit code.

    `parent` is the service's pid, as it said itself: asked for here it might be dead already.
    """
    if settings.die_at:
        arm(settings.die_at)
    ledger = Ledger(settings.home / "ledger.db")
    plan = load_plan(ledger, WorkerId(worker_id), settings)
    try:
        return uvloop.run(_run(ledger, plan, parent, observer))
    finally:
        ledger.close()


async def _run(ledger: Ledger, plan: WorkerPlan, parent: int, observer: Observer) -> int:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        worker = await make_worker(ledger, plan, clock, observer, stack)
        _listen(worker)
        observer(WorkerStarted(worker_id=plan.worker_id, partition=plan.partition, pid=os.getpid()))
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(_watch_parent(worker, parent, clock))
            await worker.run()
            watch.cancel()
    return EXIT_HALTED if worker.halt_reason else EXIT_OK


async def make_worker(
    ledger: Ledger, plan: WorkerPlan, clock: Clock, observer: Observer, stack: AsyncExitStack
) -> Worker:
    """Build a worker with its links; the stack closes their connections."""
    random = Random(SystemRandom().getrandbits(64))  # noqa: S311 - jitter and salts, no secrets
    links = [
        ServerLink(
            await stack.enter_async_context(ServerClient(url, api_key=plan.api_key)),
            clock,
            random,
            observer,
            plan.identity,
            plan.trial_patience_s,
        )
        for url in plan.server_urls
    ]
    return Worker(ledger, plan, links, clock, random, observer)


def _listen(worker: Worker) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.leave, "SIGTERM")
    loop.add_signal_handler(signal.SIGUSR1, worker.hurry)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)


async def _watch_parent(worker: Worker, parent: int, clock: Clock) -> None:
    while os.getppid() == parent:
        await clock.sleep(0.25)
    worker.leave("the service is gone")
