"""What the API needs of the service, and nothing more of it."""

from collections.abc import Callable, Mapping
from typing import Protocol

from app.core.loads import ServerLoad
from app.core.series import Chart
from app.core.spec import RunSpec
from app.core.types import PartitionId, RunId
from app.core.views import RunView
from app.figures import RunFigures
from app.notifying import Told
from app.settings import Settings
from app.submission import Added

Say = Callable[[str], None]


class ServiceDoor(Protocol):
    @property
    def settings(self) -> Settings:
        """Return what is set for this machine."""

    async def submit(self, spec: RunSpec, *, accept_changes: bool, who: str, say: Say) -> RunView:
        """Check everything, then create the run or go on with it; `say` gets the warnings."""

    async def add(self, run_id: RunId, spec: RunSpec, *, who: str, say: Say) -> Added:
        """Check the spec's partitions, and add those that the run does not have yet."""

    def poke(self) -> None:
        """Let the supervisor look at once. Called on the event loop."""

    def figures(self, run_id: RunId) -> RunFigures:
        """Return the figures of a run: those of the last tick while it is live, else as it stands.

        Called from threads.
        """

    def chart(
        self,
        run_id: RunId,
        span_s: float | None,
        n_buckets: int,
        partition_id: PartitionId | None = None,
    ) -> Chart:
        """Return the last `span_s` seconds (None: since the run was created) of the whole run.

        With `partition_id`, of that partition alone.
        """

    def loads(self) -> Mapping[str, ServerLoad]:
        """Return what the poller last saw of each server that live runs use, by address."""

    def notified(self) -> tuple[str, ...]:
        """Return who outside is told of conditions and ends: what may be shown of each target."""

    async def notify_test(self, who: str) -> tuple[Told, ...]:
        """Send a test message to all of them; return what each answered."""
