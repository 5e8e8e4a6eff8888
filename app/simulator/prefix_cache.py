"""How much of a prompt's past the pool still holds.

Owns lengths only, by the hash of the prompt; least recently used goes out first.
Invariant: after `keep` the sum of the lengths is within the room that was given.
"""

from collections import OrderedDict


class PrefixCache:
    def __init__(self) -> None:
        self._lengths: OrderedDict[bytes, int] = OrderedDict()
        self._held_tokens = 0

    def keep(self, seed: bytes, tokens: int, room_tokens: int) -> None:
        before = self._lengths.pop(seed, 0)
        self._lengths[seed] = max(tokens, before)
        self._held_tokens += self._lengths[seed] - before
        while self._held_tokens > max(0, room_tokens) and self._lengths:
            self._held_tokens -= self._lengths.popitem(last=False)[1]

    def held_tokens(self, room_tokens: int) -> int:
        """Return how many tokens of the room are held, and could be given up at once."""
        return max(0, min(self._held_tokens, room_tokens))

    def hit(self, seed: bytes, prompt_tokens: int) -> int:
        """Return how many tokens of the prompt need no prefill; never all of them."""
        held = self._lengths.get(seed, 0)
        if held:
            self._lengths.move_to_end(seed)
        return max(0, min(held, prompt_tokens - 1))

    def clear(self) -> None:
        self._lengths.clear()
        self._held_tokens = 0
