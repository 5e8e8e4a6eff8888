"""What the simulated model answers: a pure function of the prompt, and the oracle of the tests.

The id at a position depends on the ids up to and including the last assistant mark and on the
position after it, so prompt + half an answer is continued exactly as if never interrupted.
Only word ids and the end id are made, hence an answer can never spell the mark.
"""

import hashlib
import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist

from app.simulator.tokenizer import (
    ASSISTANT_MARK,
    BOS_ID,
    DEFAULT_VOCABULARY_SIZE,
    END_ID,
    decode,
    encode,
)
from app.simulator.words import lexicon

BLOCK_TOKENS = 256
_TABLE_SIZE = 1024
_ITEM_BYTES = array("I").itemsize
_LINE_MARK = array("I", encode("\n" + ASSISTANT_MARK)).tobytes()
_FIRST_MARK = [BOS_ID, *encode(ASSISTANT_MARK)]
_OVERRIDE = re.compile(r"@@(mean|len|cap)=(\d{1,7})")
_SENTENCES = (
    "starters adjectives nouns verbs determiners adjectives closers",
    "starters nouns verbs links determiners closers",
    "starters adjectives nouns adverbs verbs determiners nouns links determiners closers",
    "starters nouns links determiners nouns verbs determiners closers",
    "starters nouns verbs determiners nouns links determiners nouns verbs determiners closers",
    "starters adjectives nouns verbs adverbs links determiners adjectives nouns verbs closers",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthModel:
    """Lognormal answer lengths whose mean, after the cut at the cap, is `mean_tokens`."""

    mean_tokens: float = 1500.0
    cap_tokens: int = 10_240
    sigma: float = 0.9
    fixed_tokens: int | None = None

    def for_text(self, text: str) -> "LengthModel":
        """Return the model after `@@mean=4000`, `@@cap=9000` or `@@len=8000` in the prompt."""
        model = self
        for name, digits in _OVERRIDE.findall(text) if "@@" in text else ():
            value = max(1, int(digits))
            if name == "mean":
                model = replace(model, mean_tokens=float(value))
            elif name == "cap":
                model = replace(model, cap_tokens=value)
            else:
                model = replace(model, fixed_tokens=value)
        return model

    def draw(self, seed: bytes) -> int:
        if self.fixed_tokens is not None:
            return self.fixed_tokens
        digest = hashlib.blake2b(seed, digest_size=8, person=b"length").digest()
        share = (int.from_bytes(digest) + 0.5) / 2**64
        mu = _location(min(self.mean_tokens, 0.95 * self.cap_tokens), self.cap_tokens, self.sigma)
        length = int(math.exp(NormalDist(mu, self.sigma).inv_cdf(share)))
        return max(2, min(self.cap_tokens, length))


@lru_cache(maxsize=64)
def _location(mean: float, cap: int, sigma: float) -> float:
    """Return mu of the lognormal whose mean, clipped at the cap, is `mean`; by bisection."""
    normal = NormalDist()
    low, high = math.log(mean) - 4, math.log(mean) + 6
    for _ in range(60):
        mu = (low + high) / 2
        cut = (math.log(cap) - mu) / sigma
        clipped = math.exp(mu + sigma * sigma / 2) * normal.cdf(cut - sigma)
        clipped += cap * (1 - normal.cdf(cut))
        low, high = (mu, high) if clipped < mean else (low, mu)
    return (low + high) / 2


def prompt_end(ids: Sequence[int]) -> int:
    """Return the position after the last assistant mark; the whole length without a mark."""
    packed = array("I", ids).tobytes()
    place = packed.rfind(_LINE_MARK)
    while place > 0 and place % _ITEM_BYTES:  # bytes that only look alike across two ids
        place = packed.rfind(_LINE_MARK, 0, place + len(_LINE_MARK) - 1)
    if place >= 0 and place % _ITEM_BYTES == 0:
        return (place + len(_LINE_MARK)) // _ITEM_BYTES
    if list(ids[: len(_FIRST_MARK)]) == _FIRST_MARK:
        return len(_FIRST_MARK)
    return len(ids)


def prompt_seed(prompt_ids: Sequence[int]) -> bytes:
    return hashlib.blake2b(array("I", prompt_ids).tobytes(), digest_size=16).digest()


@lru_cache(maxsize=8)
def _tables(vocabulary_size: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return for each sentence the words of each place; the front of a list is drawn most."""
    classes = lexicon(vocabulary_size).classes

    def table(name: str) -> tuple[int, ...]:
        ids: tuple[int, ...] = getattr(classes, name)
        return tuple(
            ids[(draw * draw // _TABLE_SIZE) * len(ids) // _TABLE_SIZE]
            for draw in range(_TABLE_SIZE)
        )

    return tuple(tuple(table(name) for name in line.split()) for line in _SENTENCES)


def _block(seed: bytes, number: int, vocabulary_size: int) -> list[int]:
    """Return 256 ids of whole sentences."""
    raw = hashlib.shake_128(seed + number.to_bytes(4)).digest(2 * BLOCK_TOKENS)
    draws = array("H", raw)
    sentences = _tables(vocabulary_size)
    places: list[tuple[int, ...]] = []
    while len(places) < BLOCK_TOKENS:
        sentence = sentences[draws[len(places)] % len(sentences)]
        room = BLOCK_TOKENS - len(places)
        places.extend(sentence if len(sentence) <= room else (*sentence[: room - 1], sentence[-1]))
    return [place[draw >> 6] for place, draw in zip(places, draws, strict=True)]


class AnswerStream:
    """The endless row of words behind a prompt, made block by block as it is asked for."""

    __slots__ = ("_blocks", "_first", "seed", "start", "vocabulary_size")

    def __init__(
        self, seed: bytes, start: int = 0, vocabulary_size: int = DEFAULT_VOCABULARY_SIZE
    ) -> None:
        self.seed = seed
        self.start = start
        self.vocabulary_size = vocabulary_size
        self._first = start // BLOCK_TOKENS
        self._blocks: list[int] = []

    def words(self, begin: int, end: int) -> list[int]:
        """Return the words of positions [begin, end), counted from `start`."""
        shift = self.start - self._first * BLOCK_TOKENS
        while len(self._blocks) < shift + end:
            number = self._first + len(self._blocks) // BLOCK_TOKENS
            self._blocks += _block(self.seed, number, self.vocabulary_size)
        return self._blocks[shift + begin : shift + end]


def answer_id(seed: bytes, position: int, vocabulary_size: int = DEFAULT_VOCABULARY_SIZE) -> int:
    """Return the word at a position of the answer, as if it never ended."""
    return _block(seed, position // BLOCK_TOKENS, vocabulary_size)[position % BLOCK_TOKENS]


def answer_length(
    input_ids: Sequence[int],
    lengths: LengthModel,
    vocabulary_size: int = DEFAULT_VOCABULARY_SIZE,
) -> int:
    """Return how many ids, the end id included, the whole answer to the prompt has."""
    prompt = input_ids[: prompt_end(input_ids)]
    text = decode(prompt, vocabulary_size=vocabulary_size)
    return lengths.for_text(text).draw(prompt_seed(prompt))


def answer(
    input_ids: Sequence[int],
    lengths: LengthModel,
    max_new_tokens: int,
    vocabulary_size: int = DEFAULT_VOCABULARY_SIZE,
) -> list[int]:
    """Return what a greedy request with these ids yields, the final end id included."""
    end = prompt_end(input_ids)
    start = len(input_ids) - end
    stream = AnswerStream(prompt_seed(input_ids[:end]), start, vocabulary_size)
    left = max(1, answer_length(input_ids, lengths, vocabulary_size) - start)
    if left > max_new_tokens:
        return stream.words(0, max_new_tokens)
    return [*stream.words(0, left - 1), END_ID]
