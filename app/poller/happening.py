"""What the poller noticed of a server that people should find in the list of activity.

Shape and names of the events only. Each detail begins with `begin_of(url)`, so that the last event
of one server can be found again.
"""

from dataclasses import dataclass
from datetime import datetime

LOST = "server lost"
BACK = "server back"
# the condition "server changed" is of a run that is held for it
CHANGED = "server differs"
RESTARTED = "server restarted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    url: str
    event: str
    words: str
    at: datetime

    @property
    def detail(self) -> str:
        return begin_of(self.url) + self.words


def begin_of(url: str) -> str:
    return f"{url}: "
