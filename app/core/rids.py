"""Request ids: made so that no id is a prefix of another, and a line can be traced to its claim.

SGLang aborts by prefix (`startswith`), so ids have a fixed width; it may abort an id again two
seconds after its stream ended, so an id is never used twice: the salt is new for each attempt.
"""

import re
from dataclasses import dataclass

_SHAPE = re.compile(r"lw(\d{5})-(\d{5})-(\d{10})-(\d{5})-([0-9a-f]{8})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestId:
    run_id: int
    partition_id: int
    sample_id: int
    attempt: int
    salt: int

    def __str__(self) -> str:
        return (
            f"lw{self.run_id:05d}-{self.partition_id:05d}-{self.sample_id:010d}"
            f"-{self.attempt:05d}-{self.salt:08x}"
        )


def parse_rid(rid: str) -> RequestId | None:
    """Return the parts of one of our request ids, None for anything else.

    >>> str(parse_rid("lw00001-00002-0000000003-00004-000000ff"))
    'lw00001-00002-0000000003-00004-000000ff'
    """
    match = _SHAPE.fullmatch(rid)
    if match is None:
        return None
    run_id, partition_id, sample_id, attempt = (int(part) for part in match.groups()[:4])
    return RequestId(
        run_id=run_id,
        partition_id=partition_id,
        sample_id=sample_id,
        attempt=attempt,
        salt=int(match[5], 16),
    )
