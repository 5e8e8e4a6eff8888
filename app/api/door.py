"""What the API needs of the service, and nothing more of it."""

from collections.abc import Callable
from typing import Protocol

from app.core.spec import RunSpec
from app.core.types import RunId
from app.core.views import RunView
from app.figures import RunFigures

Say = Callable[[str], None]


class ServiceDoor(Protocol):
    async def submit(self, spec: RunSpec, *, accept_changes: bool, who: str, say: Say) -> RunView:
        """Check everything, then create the run or go on with it; `say` gets the warnings."""

    def poke(self) -> None:
        """Let the supervisor look at once. Called on the event loop."""

    def figures(self, run_id: RunId) -> RunFigures:
        """Return the figures of a run. Called from threads."""
