"""Makes what is like what is wanted: spawn, order, share, reap, bury, seal, finish.

One `step` looks at everything and acts; it is called each half second and whenever somebody pokes.
Every step starts from the ledger, so that a service that was killed at any line goes on from
there. Invariant: a partition gets a new worker only after the old one is reaped and buried.
"""

import signal
from collections import Counter
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path

from app.clock import Clock
from app.core.shares import split_servers
from app.core.spec import RunSpec, from_json
from app.core.states import PartitionState, RunState
from app.core.supervision import (
    MAX_IDLE_DEATHS,
    Want,
    Wanted,
    backoff_after,
    halting,
    is_run_over,
    wanted_workers,
)
from app.core.types import PartitionId, ServerId, WorkerId
from app.core.views import PartitionView, RunView, WorkerView
from app.errors import ConflictError, LedgerError
from app.events import Observer, RunMoved
from app.ledger import runs, servers, workers
from app.ledger.activity import Deed
from app.ledger.db import Ledger
from app.ledger.orders import RESTARTED, Order, drained, finish_run, restarted
from app.recovery import bury_worker, tell_lost
from app.sealing import seal
from app.settings import Settings
from app.supervisor.deadlines import reach_deadlines
from app.supervisor.processes import Exit, Processes

_LIVE = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)
_EXIT_HALTED = 3


class Supervisor:
    """See the module. All methods are called from one thread."""

    def __init__(
        self,
        ledger: Ledger,
        settings: Settings,
        processes: Processes,
        clock: Clock,
        observer: Observer,
        sealer: Executor,
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._processes = processes
        self._clock = clock
        self._observer = observer
        self._sealer = sealer
        self._sealing: dict[PartitionId, Future[None]] = {}
        self._idle_deaths: Counter[PartitionId] = Counter()
        self._not_before: dict[PartitionId, float] = {}
        self._shares: dict[WorkerId, dict[ServerId, int]] = {}
        self._trust_until = 0.0
        self.leaving = False

    def step(self) -> None:
        """Look at everything once and act. Trouble with the ledger is told and tried again."""
        try:
            for gone in self._processes.reap():
                self._bury(gone)
            for run in runs.list_runs(self._ledger):
                if run.state in _LIVE:
                    self._step_run(run)
            self._kill_silent()
        except LedgerError:
            # Without a ledger nobody's silence can be judged: trust each worker one lease longer.
            self._trust_until = self._clock.monotonic() + self._settings.lease_s
            raise

    def _step_run(self, run: RunView) -> None:
        partitions = runs.partitions_of(self._ledger, run.id)
        if reach_deadlines(self._ledger, run, partitions, self._clock.now(), self._observer):
            partitions = runs.partitions_of(self._ledger, run.id)
        # after the partitions: what was added meanwhile stands in the words, with its class
        run = runs.get_run(self._ledger, run.id)
        spec = from_json(run.spec_json)
        wanted = wanted_workers(run.state, spec, partitions)
        for partition in partitions:
            order = wanted[partition.id]
            if self.leaving:
                order = Wanted(want=Want.STOP)
            self._step_partition(run, partition, order)
        self._share_out(spec, wanted)
        self._close(run, partitions)

    def _step_partition(self, run: RunView, partition: PartitionView, order: Wanted) -> None:
        worker_id = self._processes.worker_of(partition.id)
        if worker_id is not None:
            if workers.set_desired(self._ledger, worker_id, order.want):
                self._processes.signal(worker_id, signal.SIGUSR1)
        elif order.want is Want.WORK:
            self._spawn(partition)
        elif order.want is Want.DRAIN or (
            partition.state is PartitionState.DRAINING and partition.is_over
        ):
            drained(self._ledger, partition.id, self._clock.now())
        elif partition.state is PartitionState.PAUSED and partition.reason == RESTARTED:
            restarted(self._ledger, partition.id, self._clock.now())
        elif not self.leaving:
            self._seal_if_over(run, partition)

    def _spawn(self, partition: PartitionView) -> None:
        if partition.id in self._sealing:
            return
        if self._clock.monotonic() < self._not_before.get(partition.id, 0.0):
            return
        Path(runs.get_run(self._ledger, partition.run_id).output_dir, partition.name).mkdir(
            parents=True, exist_ok=True
        )
        now = self._clock.now()
        worker_id = workers.register(self._ledger, partition.id, self._settings.lease_s, now)
        pid = self._processes.start(worker_id, partition.id)
        workers.set_pid(self._ledger, worker_id, pid)

    def _share_out(self, spec: RunSpec, wanted: dict[PartitionId, Wanted]) -> None:
        """Write the shares that changed, and tell those whose share it is."""
        by_url = {view.url: view.id for view in servers.servers(self._ledger)}
        ids = [by_url[url] for url in spec.server_urls if url in by_url]
        changed: dict[WorkerId, dict[ServerId, int]] = {}
        for partition_id, order in wanted.items():
            worker_id = self._processes.worker_of(partition_id)
            if worker_id is None or order.want is not Want.WORK:
                continue
            share = dict(zip(ids, split_servers(order.share, len(ids)), strict=True))
            if self._shares.get(worker_id) != share:
                changed[worker_id] = share
        if changed:
            workers.set_shares(self._ledger, changed)
            self._shares |= changed
        for worker_id in changed:
            self._processes.signal(worker_id, signal.SIGUSR1)

    def _bury(self, gone: Exit) -> None:
        """Give back what a reaped worker left, and judge its death."""
        self._shares.pop(gone.worker_id, None)
        worker = workers.get_worker(self._ledger, gone.worker_id)
        partition = runs.get_partition(self._ledger, gone.partition_id)
        now = self._clock.now()
        lost = bury_worker(
            self._ledger, partition, gone.worker_id, gone.in_words, now, self._observer
        )
        if gone.code == _EXIT_HALTED:
            self._halt(partition, worker.exit_reason)
        elif gone.code != 0:
            tell_lost(self._ledger, partition, gone.in_words, lost, now)
            self._count_death(partition, worker, gone)
        else:
            self._idle_deaths.pop(partition.id, None)

    def _count_death(self, partition: PartitionView, worker: WorkerView, gone: Exit) -> None:
        """Wait longer after each death without progress; after some, stop the run and say why."""
        if worker.received_tokens:
            self._idle_deaths.pop(partition.id, None)
            return
        self._idle_deaths[partition.id] += 1
        deaths = self._idle_deaths[partition.id]
        self._not_before[partition.id] = self._clock.monotonic() + backoff_after(deaths)
        if deaths >= MAX_IDLE_DEATHS:
            self._idle_deaths.pop(partition.id)
            log = self._settings.home / "logs"
            self._halt(
                partition,
                f"{deaths} workers of {partition.name} died one after the other without progress,"
                f" the last: {gone.in_words}; see {log}",
            )

    def _halt(self, partition: PartitionView, reason: str) -> None:
        """Stop the run: its server or its settings serve nobody. Of another server it is held."""
        event, why = halting(reason, self._spec_of(partition).thresholds)
        deed = Deed(
            who="system",
            event=event,
            detail=why,
            run_id=partition.run_id,
            partition_id=partition.id,
        )
        try:
            runs.move_run(self._ledger, partition.run_id, event, deed, self._clock.now())
        except ConflictError:
            return  # another partition's worker has said so already

    def _spec_of(self, partition: PartitionView) -> RunSpec:
        return from_json(runs.get_run(self._ledger, partition.run_id).spec_json)

    def _kill_silent(self) -> None:
        """Kill workers that live but let their lease run out; they are buried when reaped."""
        now = self._clock.now()
        if self._clock.monotonic() < self._trust_until:
            return
        for worker in workers.living(self._ledger):
            if worker.lease_expires_at < now:
                self._processes.signal(worker.id, signal.SIGKILL)

    def _seal_if_over(self, run: RunView, partition: PartitionView) -> None:
        future = self._sealing.get(partition.id)
        if future is not None:
            if future.done():
                del self._sealing[partition.id]
                future.result()
            return
        if partition.is_over and partition.sealed_at is None and partition.intake != "scanning":
            self._sealing[partition.id] = self._sealer.submit(
                seal,
                self._ledger,
                partition,
                Path(run.output_dir),
                self._clock.now(),
                self._observer,
            )

    def _close(self, run: RunView, partitions: list[PartitionView]) -> None:
        living = self._processes.living()
        if run.state is RunState.STOPPING:
            if not any(each.id in living for each in partitions):
                with suppress(ConflictError):  # somebody lets it go on at this very moment
                    self._move(run, "workers gone", run.reason)
        elif run.state is RunState.RUNNING and is_run_over(partitions, living):
            order = Order(run_id=run.id, who="system", now=self._clock.now())
            if finish_run(self._ledger, order):
                self._observer(RunMoved(run_id=run.id, state=RunState.FINISHED, reason=""))

    def _move(self, run: RunView, event: str, reason: str) -> None:
        deed = Deed(who="system", event=event, detail=reason, run_id=run.id)
        state = runs.move_run(self._ledger, run.id, event, deed, self._clock.now())
        self._observer(RunMoved(run_id=run.id, state=state, reason=reason))

    def is_alone(self) -> bool:
        """Return whether no worker process is left."""
        return not self._processes.living()

    def hasten(self) -> None:
        """Tell every worker to leave now, skipping its grace time."""
        for worker_id in self._processes.living().values():
            self._processes.signal(worker_id, signal.SIGTERM)
