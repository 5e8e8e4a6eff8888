"""What part of the samples a query means, and the way back to an address.

Owns the fields of the filter. InputError names the field and its value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from app.core.numbers import typed_whole
from app.core.states import SampleState
from app.core.visible import visible_line
from app.errors import InputError

MOST_CHARS = 512
_MOST_POSITION = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Empty texts leave a thing open. The page begins behind `after` in the partition `begin`."""

    partition: str = ""
    state: str = ""
    q: str = ""
    begin: str = ""
    after: int = -1

    @property
    def is_filtered(self) -> bool:
        return bool(self.partition or self.state or self.q)

    @property
    def is_first(self) -> bool:
        return not self.begin and self.after < 0

    @property
    def of_state(self) -> SampleState | None:
        return SampleState(self.state) if self.state else None

    def query(self) -> str:
        """Return it as the query of an address, with its question mark; "" for all."""
        pairs = [
            ("partition", self.partition),
            ("state", self.state),
            ("q", self.q),
            ("from", self.begin),
            ("after", str(self.after) if self.after >= 0 else ""),
        ]
        given = [pair for pair in pairs if pair[1]]
        return f"?{urlencode(given)}" if given else ""

    def behind(self, begin: str, after: int) -> "Asked":
        return replace(self, begin="" if begin == self.partition else begin, after=after)

    @property
    def first(self) -> "Asked":
        return replace(self, begin="", after=-1)


def asked_of(query: Mapping[str, str]) -> Asked:
    """Return what a query asks for."""
    fields = {name: value.strip() for name, value in query.items()}
    state = fields.get("state", "")
    if state and state not in list(SampleState):
        raise InputError(
            f'state "{visible_line(state[:40])}" is none of {", ".join(SampleState)}',
            hint="leave it out for all of them",
        )
    q = fields.get("q", "")
    if len(q) > MOST_CHARS:
        raise InputError(f"q has {len(q)} characters; an id has at most {MOST_CHARS}")
    try:
        q.encode()
    except UnicodeEncodeError as error:
        raise InputError("q holds half of a character; no id does") from error
    given = fields.get("after", "")
    after = typed_whole(given) if given else -1
    if after is None or after >= _MOST_POSITION:
        raise InputError(f'after "{visible_line(given[:40])}" is no position of a sample')
    return Asked(
        partition=fields.get("partition", ""),
        state=state,
        q=q,
        begin=fields.get("from", ""),
        after=after,
    )
