"""Which rows are taken: duplicates, unique ids, a sample by seed. Nothing here opens a file.

Owns the tables that remember what was seen. Keys are Python's own hashes, keyed by a secret of the
process and twice as fast as a SHA-256: among five million rows the odds that two of them share one
of the 2^64 by chance are below one in a million.
"""

from array import array
from collections.abc import Iterator
from hashlib import blake2b

MOST_IN_DICT = 1 << 20
_FIRST_SLOTS = 1 << 12
_FULLEST = 0.6
_KEY_BYTES = 8
_BUCKET_SHIFT = 48


class FirstSeen:
    """The number (below 2^32) under which each key was seen first; a key is what `hash` gives.

    A million keys are in a dict, which is quick and takes 100 bytes a key; more, or as many as are
    expected, in flat arrays, so that five million rows fit beside everything else in 300 MB.
    """

    def __init__(self, most_in_dict: int = MOST_IN_DICT) -> None:
        self._few: dict[int, int] = {}
        self._many: _Slots | None = None
        self._most_in_dict = most_in_dict

    def first(self, key: int, number: int) -> int | None:
        """Return the number that the key has already; None if it is new, and now has this one."""
        if self._many is not None:
            return self._many.first(key, number)
        few = self._few
        n_before = len(few)
        found = few.setdefault(key, number)
        if len(few) == n_before:
            return found
        if n_before >= self._most_in_dict:
            self.expect(2 * n_before)
        return None

    def get(self, key: int) -> int | None:
        """Return the number of a key, None if it was not seen."""
        return self._few.get(key) if self._many is None else self._many.get(key)

    def set(self, key: int, number: int) -> None:
        """Give a key that was seen another number."""
        if self._many is None:
            self._few[key] = number
        else:
            self._many.set(key, number)

    def expect(self, n_keys: int) -> None:
        """Make room for so many keys."""
        if self._many is None and n_keys > self._most_in_dict:
            self._many = _Slots()
            for key, number in self._few.items():
                self._many.first(key, number)
            self._few = {}


class _Slots:
    """The same in two flat arrays of 8 and 4 bytes a slot, key 0 being an empty one."""

    def __init__(self) -> None:
        self._n = 0
        self._make(_FIRST_SLOTS)

    def _make(self, n_slots: int) -> None:
        self._mask = n_slots - 1
        self._limit = int(n_slots * _FULLEST)
        self._keys = array("q", bytes(8 * n_slots))
        self._numbers = array("I", bytes(4 * n_slots))

    def first(self, key: int, number: int) -> int | None:
        slot = self._slot(key)
        if self._keys[slot]:
            return self._numbers[slot]
        self._keys[slot] = key or 1
        self._numbers[slot] = number
        self._n += 1
        if self._n > self._limit:
            self._grow()
        return None

    def get(self, key: int) -> int | None:
        slot = self._slot(key)
        return self._numbers[slot] if self._keys[slot] else None

    def set(self, key: int, number: int) -> None:
        self._numbers[self._slot(key)] = number

    def _slot(self, key: int) -> int:
        """Return where the key is, or the empty slot where it would be."""
        keys, mask = self._keys, self._mask
        key = key or 1
        slot = key & mask
        while (held := keys[slot]) and held != key:
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        keys, numbers = self._keys, self._numbers
        self._make(2 * len(keys))
        for key, number in zip(keys, numbers, strict=True):
            if key:
                slot = self._slot(key)
                self._keys[slot] = key
                self._numbers[slot] = number


class UniqueIds:
    """Ids of one partition: the first keeps its own, a second one becomes `id~2`, then `id~3`."""

    def __init__(self) -> None:
        self._seen = FirstSeen()

    def expect(self, n_ids: int) -> None:
        self._seen.expect(n_ids)

    def unique(self, wanted: str) -> str:
        """Return the id, or the first that is free behind it.

        >>> ids = UniqueIds()
        >>> [ids.unique(one) for one in ("a", "a~2", "a", "a")]
        ['a', 'a~2', 'a~3', 'a~4']
        """
        key = hash(wanted)
        n_before = self._seen.first(key, 1)
        if n_before is None:
            return wanted
        while True:
            n_before += 1
            self._seen.set(key, n_before)
            one = f"{wanted}~{n_before}"
            if self._seen.first(hash(one), 1) is None:
                return one


class Sample:
    """So many rows of a partition, chosen by seed and row number alone: no order matters.

    Offer every row that could be taken, then ask for `takes` in the same order.
    """

    def __init__(self, seed: int, partition: str, n_wanted: int) -> None:
        self._start = blake2b(f"{seed}\0{partition}\0".encode(), digest_size=_KEY_BYTES)
        self._n_wanted = n_wanted
        self._ranks = array("Q")

    def offer(self, row: int) -> None:
        digest = self._start.copy()
        digest.update(b"%d" % row)
        self._ranks.append(int.from_bytes(digest.digest(), "big"))

    def takes(self) -> Iterator[bool]:
        """Yield for each offered row, in the order of the offers, whether it is taken.

        Taken are the smallest ranks; of equal ones the first.
        """
        if self._n_wanted >= len(self._ranks):
            yield from (True for _ in self._ranks)
            return
        last, n_of_last = self._last_rank()
        for rank in self._ranks:
            if rank == last and n_of_last:
                n_of_last -= 1
                yield True
            else:
                yield rank < last

    def _last_rank(self) -> tuple[int, int]:
        """Return the largest rank that is taken, and how many rows of that very rank are.

        Counted by the leading bits first, so that a sorted copy of all is never made.
        """
        buckets = array("L", bytes(8 * (1 << (64 - _BUCKET_SHIFT))))
        for rank in self._ranks:
            buckets[rank >> _BUCKET_SHIFT] += 1
        n_left, bucket = self._n_wanted, 0
        while n_left > buckets[bucket]:
            n_left -= buckets[bucket]
            bucket += 1
        inside = sorted(rank for rank in self._ranks if rank >> _BUCKET_SHIFT == bucket)
        last = inside[n_left - 1]
        return last, sum(rank == last for rank in inside[:n_left])
