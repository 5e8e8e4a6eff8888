"""A home with a run, a clock set by hand that begins now, and recorders over them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.core.loads import ServerLoad
from app.events import Event
from app.recorder import Recorder
from app.settings import Settings
from tests.api.home import Home
from tests.api.test_figures import Hands


@dataclass
class Desk:
    """One home, and one service after the other that records it."""

    home: Home
    hands: Hands
    settings: Settings
    stack: ExitStack
    loads: dict[str, ServerLoad] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def recorder(self, loads: Callable[[], Mapping[str, ServerLoad]] | None = None) -> Recorder:
        return Recorder(
            self.home.ledger,
            self.settings,
            self.hands,
            self.events.append,
            loads or (lambda: self.loads),
        )

    def run(self, recorder: Recorder, seconds: int, *, tokens: int = 0) -> None:
        """Look and keep each second; in each, B1 and B2 answer one sample with so many tokens."""
        for _ in range(seconds):
            self.hands.at_s += 1.0
            if tokens:
                self.home.keep("B1_chat", 1, tokens=tokens)
                self.home.keep("B2_code", 1, tokens=tokens)
            recorder.look()
            recorder.keep()

    def rows(self) -> list[tuple[int, str]]:
        with self.home.ledger.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT at_ms, figures_json FROM snapshot ORDER BY at_ms"
            )
            return [(row[0], row[1]) for row in found]

    def told(self) -> list[tuple[str, str]]:
        """Return the system's entries of the activity, the oldest first."""
        with self.home.ledger.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT event, detail FROM activity WHERE who = 'system' ORDER BY id"
            )
            return [(row[0], row[1]) for row in found]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    home = Home(tmp_path / "home", n_samples=200)
    began = (home.run.created_at - Hands(at_s=0.0).now()).total_seconds()
    hands = Hands(at_s=began + 1.0)
    home.clock = hands  # type: ignore[assignment]  # the same time for workers and service
    settings = Settings(
        home=home.folder, snapshot_s=2.0, disk_low_bytes=0, storage_slow_after_s=3600
    )  # workers of these tests tick when they are told to
    with ExitStack() as stack:
        stack.callback(home.ledger.close)
        yield Desk(home, hands, settings, stack)
