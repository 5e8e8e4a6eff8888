"""The processes of a run whose figures are held against each other, and what happens to them.

Owns the looking at one tick in all forms, and the acts between two looks: pauses, a changed
concurrency, goal and budget, killed workers, a server that dies and comes back.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random

import httpx

from app.core.states import SampleState
from tests.process.ledger_watch import Watch
from tests.process.run_process import RunProcess, SimulatorProcess, wait_for
from tests.process.shown import (
    Cells,
    Follower,
    Json,
    assert_figures_are_whole,
    assert_metrics_show,
    assert_page_shows,
)

SCRIPT = {
    "@@bad": [{"json": [400, {"error": {"message": "this one is refused"}}]}],
    "@@torn": [{"abort_after": 30, "message": "aborted in the middle"}, "model"],
    "@@doomed": [{"abort_after": 30, "message": "aborted each time"}],
}


@dataclass
class Instant:
    """What all said at one tick."""

    run: Json
    at_s: float
    seen_s: float
    sent_tokens: int | None


@dataclass
class Scene:
    """The processes, and who watches them."""

    run: RunProcess
    simulator: SimulatorProcess
    watch: Watch
    random: Random
    client: httpx.Client = field(init=False)
    follower: Follower = field(init=False)
    instants: list[Instant] = field(default_factory=list)

    def enter(self, client: httpx.Client) -> None:
        self.client = client
        root = str(client.base_url).removesuffix("/api/v1/")
        self.root = f"{root}/runs/1"
        self.follower = Follower(client, self.root)

    def order(self, verb: str, **body: object) -> None:
        answer = self.client.post(f"/runs/test/{verb}", json=body)
        assert answer.status_code == 200, answer.text

    def figures(self) -> Json:
        answer = self.client.get("/runs/1")
        assert answer.status_code == 200, answer.text
        value: Json = answer.json()
        return value

    def compare(self) -> None:
        """Take all forms of one tick, and hold them against each other."""
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s:
            first = self.figures()
            seen_s = time.time()
            self.follower.look()
            page = self.client.get(self.root, headers={"accept": "text/html"}).text
            metrics = self.client.get(self.root.removesuffix("/runs/1") + "/metrics").text
            if first == self.figures() and self.follower.at == first["at"]:
                break
        else:
            raise AssertionError("no tick in which all forms could be asked")
        assert_figures_are_whole(first)
        assert_page_shows(Cells(page), first)
        assert_page_shows(self.follower.cells, first)
        assert_metrics_show(metrics, first)
        sent = self.watch.ask()
        at_s = datetime.fromisoformat(first["at"]).timestamp()
        self.instants.append(
            Instant(
                run=first,
                at_s=at_s,
                seen_s=seen_s,
                sent_tokens=None if sent is None else sent.tokens,
            )
        )

    def go_on(self) -> None:
        """Resume everything, and wait until it has begun."""
        if self.figures()["state"] == "paused":
            self.order("resume")
        before = self._received()
        wait_for(lambda: self._received() > before, "more tokens")

    def _received(self) -> int:
        return int(self.figures()["tokens"]["received_tokens"])

    def look_at_random_instants(self, n: int) -> None:
        for _ in range(n):
            time.sleep(self.random.uniform(0.05, 1.0))  # the instant is the test's input
            self.compare()

    def rest(self) -> int:
        """Pause everything; at rest all agree exactly. Return sent tokens that were lost so far."""
        self.order("pause")
        wait_for(self._is_at_rest, "everything to be at rest")
        self.compare()
        shown = self.instants[-1].run
        sent = self.watch.ask()
        assert sent is not None
        assert shown["in_flight_requests"] == sent.in_flight == shown["samples"]["running"] == 0
        assert_counted(self.run.home / "ledger.db", shown)
        return sent.tokens - int(shown["tokens"]["received_tokens"])

    def _is_at_rest(self) -> bool:
        shown, sent = self.figures(), self.watch.ask()
        is_idle = shown["in_flight_requests"] == 0 and shown["samples"]["running"] == 0
        return is_idle and sent is not None and sent.in_flight == 0

    def kill_a_worker(self) -> None:
        wait_for(self.run.worker_pids, "a worker to kill")
        began_s = time.time()
        assert self.run.kill_workers(1) == 1
        self.watch.lose(began_s, time.time())

    def kill_the_server(self) -> None:
        self.watch.kill_simulator()

    def bring_the_server_back(self) -> None:
        self.simulator.start()
        self.tell_script()

    def tell_script(self) -> None:
        httpx.post(f"{self.simulator.url}/sim/script", json=SCRIPT, trust_env=False)


def assert_counted(path: Path, shown: Json) -> None:
    """The counters are what the samples and checkpoints themselves add up to."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        for each in shown["partitions"]:
            states = dict(
                connection.execute(
                    "SELECT state, count(*) FROM sample WHERE partition_id = ? GROUP BY state",
                    (each["id"],),
                )
            )
            assert {str(s): states.get(str(s), 0) for s in SampleState} == {
                str(s): each["samples"][str(s)] for s in SampleState
            }
            kept, held = connection.execute(
                "SELECT (SELECT coalesce(sum(output_tokens), 0) FROM sample"
                " WHERE partition_id = :id AND line_offset IS NOT NULL),"
                " (SELECT coalesce(sum(length(c.ids) / 4), 0) FROM checkpoint c"
                " JOIN sample s ON s.id = c.sample_id WHERE s.partition_id = :id)",
                {"id": each["id"]},
            ).fetchone()
            tokens = each["tokens"]
            assert (tokens["kept_tokens"], tokens["held_tokens"]) == (kept, held), each["name"]


def acts(scene: Scene) -> Iterator[list[Callable[[], object]]]:
    """Give what happens in each life of the service, in order."""
    yield [
        lambda: scene.order("pause", partitions=["B2_a"]),
        lambda: scene.order("concurrency", partition="B4_b", requests=7),
        scene.kill_a_worker,
        lambda: scene.order("resume", partitions=["B2_a"]),
        lambda: scene.order("goal", partition="B1_goal", samples=40),
        scene.kill_the_server,
        scene.bring_the_server_back,
    ]
    yield [
        scene.kill_a_worker,
        lambda: scene.order("budget", partition="B3_budget", tokens=30_000),
        lambda: scene.order("drain", partitions=["B4_b"]),
        lambda: scene.order("concurrency", partition="B4_b", requests=None),
    ]
