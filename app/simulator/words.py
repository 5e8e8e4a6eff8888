"""The readable half of the toy vocabulary: which word each id from 261 on stands for.

Owns the word lists and their split into classes; does not know about prompts or answers.
Invariant: the texts of all ids are distinct, and a list depends on the size of the vocabulary only.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

FIRST_WORD_ID = 261
SMALLEST_VOCABULARY = 512

_STARTERS = (
    "The A Every Each This That One Another Some No My Our Your Their Its Any Such Both Most Few "
    "Then Later Often Perhaps Inside Outside Today Meanwhile"
)
_DETERMINERS = "the a this that each every one another some any our your their its"
_LINKS = (
    "of in under over near beside behind through across after before with without toward around "
    "between and or but while because until"
)
_ADVERBS = (
    "slowly quietly often seldom nearly almost always gently twice again soon barely warmly plainly"
)
_ADJECTIVES = (
    "small old bright quiet heavy narrow gentle steep hollow pale distant crooked patient careful "
    "early late broken silver wooden frozen"
)
_VERBS = (
    "carries follows finds keeps turns crosses holds reaches leaves meets counts moves opens "
    "covers remembers lifts gathers measures waits answers"
)
_NOUNS = (
    "river lamp garden window bridge letter harbour mountain engine market kettle forest library "
    "compass ladder village orchard signal anchor pocket"
)
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "h", "k", "l", "m", "n", "p", "pl", "r", "s", "t")
_VOWELS = ("a", "e", "i", "o", "u")
_MIDDLES = ("l", "m", "n", "r", "v", "nd", "st")
_ENDINGS = ("an", "el", "in", "or", "um", "eth", "ow")
_STRIDE = 1789


@dataclass(frozen=True, slots=True, kw_only=True)
class WordClasses:
    """Ids by their part in a sentence."""

    starters: tuple[int, ...]
    determiners: tuple[int, ...]
    links: tuple[int, ...]
    adverbs: tuple[int, ...]
    adjectives: tuple[int, ...]
    verbs: tuple[int, ...]
    nouns: tuple[int, ...]
    closers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    texts: tuple[str, ...]
    classes: WordClasses


def _coined() -> list[str]:
    """Return words of our own making, neighbours unlike each other."""
    words = ["".join(parts) for parts in product(_ONSETS, _VOWELS, _MIDDLES, _ENDINGS)]
    return [words[(position * _STRIDE) % len(words)] for position in range(len(words))]


def _fill(own: str, coined: list[str], size: int, ending: str) -> list[str]:
    words = [f" {word}" for word in own.split()][:size]
    while len(words) < size:
        # Past the end of the coined words the texts are numbered: still distinct, still readable.
        stem = coined.pop() if coined else f"word{len(words)}"
        words.append(f" {stem}{ending}")
    return words


@lru_cache(maxsize=8)
def lexicon(vocabulary_size: int) -> Lexicon:
    if vocabulary_size < SMALLEST_VOCABULARY:
        raise ValueError(
            f"vocabulary_size is {vocabulary_size}; the toy words need at least "
            f"{SMALLEST_VOCABULARY} ids"
        )
    coined = _coined()
    fixed = {
        name: [f" {word}" for word in own.split()]
        for name, own in (
            ("starters", _STARTERS),
            ("determiners", _DETERMINERS),
            ("links", _LINKS),
            ("adverbs", _ADVERBS),
        )
    }
    room = vocabulary_size - FIRST_WORD_ID - sum(map(len, fixed.values()))
    quarter = room // 4
    nouns = _fill(_NOUNS, coined, quarter, "")
    lists = fixed | {
        "adjectives": _fill(_ADJECTIVES, coined, quarter, "ic"),
        "verbs": _fill(_VERBS, coined, quarter, "es"),
        "nouns": nouns,
        "closers": _fill(" ".join(f"{noun.strip()}." for noun in nouns), coined, room, "."),
    }
    lists["closers"] = lists["closers"][: room - 3 * quarter]
    texts: list[str] = []
    ids: dict[str, tuple[int, ...]] = {}
    for name, words in lists.items():
        first = FIRST_WORD_ID + len(texts)
        ids[name] = tuple(range(first, first + len(words)))
        texts.extend(words)
    return Lexicon(texts=tuple(texts), classes=WordClasses(**ids))
