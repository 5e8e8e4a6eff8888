"""How often each supervised token stands in merged data.

Owns the counting, which token by token would be most of what a merge costs: ids are counted in
batches, by numpy where it is installed (it comes with the extra `parquet`), else by a loop.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

_BATCH_TOKENS = 1 << 20


class TokenCounts:
    """Counts of ids from 0 on; `fields` gives what `__init__` takes."""

    def __init__(self, fields: Mapping[str, int] | None = None) -> None:
        self._counts = Counter({int(token): n for token, n in (fields or {}).items()})
        self._waiting = array("I")
        self._numpy = import_module("numpy") if find_spec("numpy") else None

    def add(self, ids: Sequence[int]) -> None:
        self._waiting.extend(ids)
        if len(self._waiting) >= _BATCH_TOKENS:
            self._flush()

    def fields(self) -> dict[str, int]:
        """Return the counts by id, as texts in the order of the ids."""
        self._flush()
        return {str(token): n for token, n in sorted(self._counts.items())}

    def _flush(self) -> None:
        """Count what waits."""
        if self._numpy is None or not self._waiting:
            self._counts.update(self._waiting)
        else:
            found = self._numpy.bincount(self._numpy.frombuffer(self._waiting, "uint32"))
            tokens = found.nonzero()[0]
            self._counts.update(dict(zip(tokens.tolist(), found[tokens].tolist(), strict=True)))
        self._waiting = array("I")
