"""A scene of `conditions`: a service at work, looked at everywhere, and what was seen when.

Owns the looking, again and again, and the server's own counts beside it. Times are monotonic.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from app.core.conditions import ConditionKind
from app.simulator.counters import RequestEntry
from app.simulator.server import SimulatorThread
from tests.notifying.receiver import Receiver, receiving
from tests.process.case_run import CaseRun
from tests.process.condition_eyes import PILLS, Eyes, Key, from_metrics, heard_by
from tests.process.run_process import wait_for
from tests.process.serving import serving, submission
from tests.process.shown import Cells

PLACES = ("API", "metrics", "page", "message")
SAMPLE_S, PROBE_S = 0.02, 0.1
# when, and what the server had sent and been asked for by then
Sample = tuple[float, int, int]


@dataclass
class Scene:
    """A run, its service and server, and what was seen where since when, after what poll."""

    run: CaseRun
    simulator: SimulatorThread
    receiver: Receiver
    client: httpx.Client
    seen: dict[tuple[str, Key], list[float]] = field(default_factory=dict)
    delivered: list[Sample] = field(default_factory=list)
    truth: dict[Key, list[float]] = field(default_factory=dict)
    polls_s: dict[tuple[str, Key], list[float]] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def sample(self) -> None:
        """Note what the server has sent, until the end."""
        while not self.ended.wait(SAMPLE_S):
            stats = self.simulator.stats
            self.delivered.append((time.monotonic(), stats.delivered_tokens, stats.generate_calls))

    def probe(self) -> None:
        """Look at all places, until the end; a change of what is there makes a mark."""
        eyes = Eyes(self.client, self.receiver)
        last_s = dict.fromkeys(PLACES, time.monotonic())
        while not self.ended.wait(PROBE_S):
            holding, _ = eyes.from_api()
            self._mark("API", holding, last_s)
            told = self.client.get(f"{eyes.root}/metrics").text
            self._mark("metrics", from_metrics(told), last_s)
            page = self.client.get(f"{eyes.root}/runs/1", headers={"accept": "text/html"}).text
            self._mark("page", _from_page(Cells(page), eyes), last_s)

    def _mark(self, place: str, holding: set[Key], last_s: dict[str, float]) -> None:
        """Add a mark where begin and end, which take turns, have one more."""
        now_s = time.monotonic()
        for key in holding | {key for there, key in self.seen if there == place}:
            marks = self.seen.setdefault((place, key), [])
            if (key in holding) != (len(marks) % 2 == 1):
                marks.append(now_s)
                self.polls_s.setdefault((place, key), []).append(now_s - last_s[place])
        last_s[place] = now_s

    def poll_s(self, key: Key, turn: int) -> float:
        """Return for how long none had looked at a place before the mark was made."""
        return max(self.polls_s[place, key][turn] for place in PLACES if place != "message")

    def marks(self, place: str, key: Key) -> list[float]:
        if place != "message":
            return self.seen.get((place, key), [])
        listed = zip(tuple(self.receiver.heard), tuple(self.receiver.at_s), strict=False)
        return [at_s for one, at_s in listed if (one["kind"], one["partition"]) == key]

    def wait(self, key: Key, n_marks: int, within_s: float = 60.0) -> None:
        """Wait until it has begun (1) or ended (2) in all places."""
        everywhere = lambda: all(len(self.marks(place, key)) >= n_marks for place in PLACES)  # noqa: E731
        wait_for(everywhere, f"{key} everywhere ({n_marks})", within_s)

    def log(self, prefix: str) -> list[RequestEntry]:
        """Return a partition's requests that have ended, in that order."""
        found = [one for one in self.simulator.stats.requests() if one.row.startswith(prefix)]
        return sorted((one for one in found if one.ended_at), key=lambda one: one.ended_at or 0.0)


def _from_page(page: Cells, eyes: Eyes) -> set[Key]:
    """Return what the page shows: pills of partitions, the banner for the whole run."""
    found: set[Key] = set()
    for each in eyes.run["partitions"]:
        word = page.texts.get(f"p{each['id']}-s", "")
        found |= {(kind, each["name"]) for kind, pill in PILLS.items() if word.startswith(pill)}
    said = " ".join(text for name, text in page.texts.items() if name.startswith("ban-"))
    signs = {
        ConditionKind.STALLED: "No token from the server",
        ConditionKind.WAITING_FOR_SERVER: "The server has not answered",
    }
    return found | {(kind, "") for kind, sign in signs.items() if sign in said}


@contextmanager
def scene(folder: Path, prepare: Callable[[CaseRun], None]) -> Iterator[Scene]:
    """Serve a run and look on."""
    folder.mkdir()
    with ExitStack() as stack:
        simulator = stack.enter_context(SimulatorThread(port=0))
        receiver = stack.enter_context(receiving())
        run = CaseRun(folder, simulator.url, environment={"LONGWATCH_POLL_S": "0.5"})
        stack.callback(run.close)
        prepare(run)
        run.write_spec()
        client = stack.enter_context(serving(run, heard_by(receiver)))
        made = Scene(run, simulator, receiver, client)
        yield made


@contextmanager
def looking(made: Scene) -> Iterator[None]:
    assert made.client.post("/runs", json=submission(made.run)).status_code == 201
    threads = [threading.Thread(target=each) for each in (made.sample, made.probe)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        made.ended.set()
        for each in threads:
            each.join()
