"""What the ledger and the simulator held at which moment, seen densely from a process of its own.

Two threads of the test: one reads the ledger's file over its own read-only connection after each
commit, one asks the simulator for its counters. Invariant: nothing here asks the service.
"""

import sqlite3
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from app.core.states import SampleState
from tests.process.run_process import SimulatorProcess

STATES = tuple(f"n_{state}" for state in SampleState)
TOKENS = ("received_tokens", "kept_tokens", "wasted_tokens", "held_tokens")
# these never become less: a figure lies between what was before and what was after
MONOTONE = ("received_tokens", "wasted_tokens", "kept_tokens", "n_ok", "n_truncated", "n_failed")
COLUMNS = ("state", "own_concurrency", "token_budget", "goal_samples", *STATES, *TOKENS)
_WORKERS = (
    "SELECT p.name, w.in_flight, w.lease_expires_at_ms,"
    " (SELECT sum(n) FROM share WHERE worker_id = w.id)"
    " FROM worker w JOIN partition p ON p.id = w.partition_id WHERE w.state <> 'exited'"
)
_LOOK_S, _AT_LEAST_S, _ASK_S = 0.001, 0.2, 0.05
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """What the ledger held, read between two moments of the wall clock."""

    begin_s: float
    end_s: float
    run_state: str
    partitions: Mapping[str, Row]
    in_flight: Mapping[str, int]
    shares: Mapping[str, int]
    leases: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sent:
    """What the simulator had sent by then, all its lives together, and what it had in hand."""

    begin_s: float
    end_s: float
    tokens: int
    in_flight: int


class Watch:
    """See the module. `held` and `sent` are in the order of time."""

    def __init__(self, path: Path, simulator: SimulatorProcess) -> None:
        self.held: list[Held] = []
        self.sent: list[Sent] = []
        self._deaths: list[tuple[float, float]] = []
        self._path = path
        self._simulator = simulator
        self._before = 0  # tokens of the simulator's earlier lives
        self._over = threading.Event()
        self._errors: list[BaseException] = []
        self._asking = httpx.Client(trust_env=False, timeout=10)

    @contextmanager
    def reading(self) -> Iterator["Watch"]:
        """Look from now on; raises afterwards what went wrong in a thread."""
        threads = [threading.Thread(target=self._run, args=(w,)) for w in (self._look, self._ask)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
            self._asking.close()
        assert self._errors == []

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._errors.append(error)

    # -- the ledger ---------------------------------------------------------------------------

    def _look(self) -> None:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            version, looked_s = None, 0.0
            while not self._over.wait(_LOOK_S):
                newest = connection.execute("PRAGMA data_version").fetchone()[0]
                if newest == version and time.time() - looked_s < _AT_LEAST_S:
                    continue
                self.held.append(_read(connection))
                version, looked_s = newest, self.held[-1].end_s

    def held_between(self, begin_s: float, end_s: float) -> list[Held]:
        """Return all that the ledger held in that span, with the look before and the one after."""
        first = bisect_right([each.end_s for each in self.held], begin_s) - 1
        last = bisect_left([each.begin_s for each in self.held], end_s)
        assert first >= 0
        assert last < len(self.held), "the ledger was not looked at long enough"
        return self.held[first : last + 1]

    def recorded_s(self, at_s: float) -> float:
        """Return a moment by which everything that had come then is in the ledger `at_s`.

        A tick gathers, then commits: what came before the last tick but one is in for certain.
        """
        past = self.held_between(max(at_s - 10.0, self.held[0].end_s), at_s)[:-1]
        found = []
        for name in past[-1].leases:
            beats = [
                each.begin_s
                for before, each in pairwise(past)
                if before.leases.get(name) != each.leases.get(name)
            ]
            found.append(beats[-3] if len(beats) > 2 else past[0].begin_s)
        return min(found, default=at_s)

    # -- the simulator ------------------------------------------------------------------------

    def _ask(self) -> None:
        while not self._over.wait(_ASK_S):
            self.ask()

    def ask(self) -> Sent | None:
        """Return what it has sent by now, None if it is away."""
        before, begin_s = self._before, time.time()
        try:
            counters = self._asking.get(f"{self._simulator.url}/sim/counters").json()
        except httpx.TransportError:
            return None
        sent = Sent(
            begin_s=begin_s,
            end_s=time.time(),
            tokens=before + counters["delivered_tokens"],
            in_flight=counters["in_flight"],
        )
        if before == self._before:
            self.sent.append(sent)
            self.sent.sort(key=lambda each: each.begin_s)
        return sent

    def kill_simulator(self) -> None:
        """Let it end in mid-answer, none of its counts lost: it is frozen first."""
        self._asking.post(f"{self._simulator.url}/sim/freeze", json={})
        last = self.ask()
        assert last is not None
        self._simulator.kill()
        self.lose(last.begin_s, time.time())
        self._before = last.tokens

    def lose(self, begin_s: float, end_s: float) -> None:
        """Remember that something died in that span: what was on its way to the ledger is lost."""
        self._deaths.append((begin_s, end_s))

    def sent_between(self, begin_s: float, end_s: float) -> int:
        """Return how many tokens were sent in that span, rounded outwards to the asks."""
        return self.sent_after(end_s) - self.sent_before(begin_s)

    def sent_before(self, at_s: float) -> int:
        return max((each.tokens for each in self.sent if each.end_s <= at_s), default=0)

    def sent_after(self, at_s: float) -> int:
        later = [each.tokens for each in self.sent if each.begin_s >= at_s]
        return min(later) if later else self.sent[-1].tokens

    def lost_by(self, at_s: float) -> int:
        """Return how many sent tokens no ledger can have received, at most."""
        return sum(
            self.sent_between(self.recorded_s(begin_s), end_s)
            for begin_s, end_s in self._deaths
            if begin_s <= at_s
        )


def _read(connection: sqlite3.Connection) -> Held:
    begin_s = time.time()
    connection.execute("BEGIN")
    run = connection.execute("SELECT state FROM run").fetchone()
    rows = connection.execute("SELECT * FROM partition").fetchall()
    workers = connection.execute(_WORKERS).fetchall()
    connection.execute("COMMIT")
    return Held(
        begin_s=begin_s,
        end_s=time.time(),
        run_state=run["state"],
        partitions={row["name"]: {column: row[column] for column in COLUMNS} for row in rows},
        in_flight={row[0]: row[1] for row in workers},
        leases={row[0]: row[2] for row in workers},
        shares={row[0]: row[3] for row in workers if row[3] is not None},
    )
