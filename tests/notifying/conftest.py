"""A home with a run, a receiver on loopback, and a notifier that feeds it with a clock of hands."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from sqlalchemy import text

from app.core.conditions import ConditionKind
from app.events import Event, NotificationTried
from app.ledger import deliveries
from app.ledger.activity import Deed, add
from app.notifying import Notifier
from app.notifying.addresses import Allowed
from app.notifying.targets import Target
from app.notifying.webhook import Webhook
from tests.api.home import Home
from tests.api.test_figures import Hands
from tests.notifying.receiver import Receiver, receiving
from tests.stage import _new_ledger

LOOPBACK = Allowed(hosts=frozenset({"127.0.0.1"}))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def hook(receiver: Receiver, **changes: object) -> Webhook:
    made = Webhook(receiver.url, LOOPBACK)
    return replace(made, **changes)  # type: ignore[arg-type]  # named by the tests


@dataclass
class Post:
    """A home, its notifiers one after the other, and what is noted."""

    home: Home
    stack: AsyncExitStack
    hands: Hands = field(default_factory=Hands)
    events: list[Event] = field(default_factory=list)

    def notifier(self, *targets: Target) -> Notifier:
        made = Notifier(self.home.ledger, targets, self.hands, self.events.append)
        made.begin()
        return made

    def tell(
        self,
        detail: str,
        kind: str = ConditionKind.STALLED,
        *,
        who: str = "system",
        partition: str | None = None,
    ) -> None:
        """Write an entry as the chronicle does."""
        deed = Deed(
            who=who,
            event=str(kind),
            detail=detail,
            run_id=self.home.run_id,
            partition_id=self.home.partition(partition).id if partition else None,
        )
        add(self.home.ledger, deed, self.hands.now())
        self.hands.at_s += 1.0

    def rows(self, target: str = "webhook") -> list[tuple[str, int, str]]:
        """Return state, tries and reply of a target's rows, marks left out."""
        with self.home.ledger.read() as connection:
            found = connection.execute(
                text(
                    "SELECT state, n_tries, said FROM delivery WHERE target = :target"
                    " AND state NOT IN ('mark', 'off') ORDER BY activity_id"
                ),
                {"target": target},
            )
            return [(row[0], row[1], row[2]) for row in found]

    def noted(self, event: str) -> list[str]:
        with self.home.ledger.read() as connection:
            found = connection.execute(
                text("SELECT detail FROM activity WHERE event = :event ORDER BY id"),
                {"event": event},
            )
            return [str(row[0]) for row in found]

    def tried(self) -> list[NotificationTried]:
        return [each for each in self.events if isinstance(each, NotificationTried)]

    def waiting(self) -> Callable[[], object]:
        return lambda: deliveries.next_due(self.home.ledger, "webhook", self.hands.now())


@pytest.fixture
async def post(tmp_path: Path) -> AsyncIterator[Post]:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "ledger.db").write_bytes(_new_ledger())  # migrations take longer than many a test
    home = Home(folder)
    async with AsyncExitStack() as stack:
        stack.callback(home.ledger.close)
        yield Post(home, stack)
