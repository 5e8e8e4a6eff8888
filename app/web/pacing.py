"""When the long lines of a page are sent: seldom, and where a frame has room.

Owns the budget of a frame. Pure. Invariants: an ordinary frame of ten rows, each with its line,
stays below `FRAME_BYTES`; a line that has changed goes within its rest and patience, whatever
else there is to send.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FRAME_BYTES = 2_900
REST_LOOKS = 15  # a line is sent at most once in so many looks, which are a second apart
LONG_BYTES = 1_500
LONG_REST_LOOKS = 60  # the line of a whole chart
PATIENCE_LOOKS = 15  # for so long it waits for a frame with room, then goes anyway
_QUOTES_BYTES = 12


@dataclass(slots=True)
class _Line:
    now: str
    sent: str
    sent_in: int

    @property
    def due_in(self) -> int:
        rest = LONG_REST_LOOKS if len(self.now) > LONG_BYTES else REST_LOOKS
        return self.sent_in + rest


class Lines:
    """The lines of one page, by id: as they are, and as they were last sent."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def update(self, paths: Mapping[str, str], number: int) -> None:
        """Take the lines of a look. A new one counts as sent: it came with its markup."""
        for name in self._lines.keys() - paths.keys():
            del self._lines[name]
        for name, d in paths.items():
            self._lines.setdefault(name, _Line(d, d, number)).now = d

    def release(self, used_bytes: int, number: int) -> int:
        """Let those go that a frame of this size has room for, longest due first; return how many.

        One that is late beyond patience goes alone into a frame without room.
        """
        waiting = sorted(
            (line.due_in, name)
            for name, line in self._lines.items()
            if line.now != line.sent and number >= line.due_in
        )
        n_released = 0
        for due_in, name in waiting:
            line = self._lines[name]
            cost = len(line.now) + len(name) + _QUOTES_BYTES
            is_late = n_released == 0 and number >= due_in + PATIENCE_LOOKS
            if used_bytes + cost <= FRAME_BYTES or is_late:
                line.sent, line.sent_in = line.now, number
                used_bytes += cost
                n_released += 1
        return n_released

    def since(self, number: int) -> dict[str, str]:
        """Return the lines that were let go after that look."""
        return {name: line.sent for name, line in self._lines.items() if line.sent_in > number}
