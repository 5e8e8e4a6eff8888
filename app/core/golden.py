"""Fixed strings whose ids tell two tokenizers apart, however alike their names are.

Owns the strings and what is stored of their ids: a short digest each, so that the first string
that is encoded otherwise can be named. Pure. Changing the list makes stored marks incomparable,
never different.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence

_DIGEST_CHARACTERS = 12
# Written in escapes where a reader could not see what stands there.
STRINGS = (
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "I'll, we've, don't, IT'S",
    "antidisestablishmentarianism",
    "0123456789",
    "1 12 123 1234 12345 1,234,567.89",
    "3.14159e-10 0xDEADBEEF",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u4eba\u5de5\u667a\u80fdAI\u6a21\u578b2025\u5e74",
    "\u3053\u3093\u306b\u3061\u306f\u3001\u30ab\u30bf\u30ab\u30ca",
    "\uc548\ub155\ud558\uc138\uc694",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "caf\u00e9 cafe\u0301 \u00df \ufb01",
    "\U0001f600\U0001f680",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd",
    "\U00020000\U00029e3d",
    " leading and trailing ",
    "two  three   four    ",
    "\n\n\n",
    "\t\tindented\n    by spaces\r\n",
    "\u00a0\u200b\u3000\ufeff",
    'def f(x: int) -> str:\n    return f"{x!r}"\n',
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    '{"key": [1, 2.5, null], "other": true}',
    '<div class="a">&amp;</div>',
    "https://example.org/path?query=1#part",
    "\\frac{a}{b} \u2211\u222b\u2264\u221e",
    "<think>so</think>",
    "<|im_start|>user<|im_end|><|im_middle|>",
    "<|endoftext|></s>[BOS][EOS]",
)


def mark_of(ids: Sequence[Sequence[int]]) -> dict[str, object]:
    """Return what is stored of the strings' ids, in the strings' order, ready for JSON."""
    return {"strings": _digest(STRINGS), "ids": [_digest(list(each)) for each in ids]}


def first_difference(old: object, new: object) -> str | None:
    """Return the first string that two marks have other ids for, None if they agree.

    Also None where they cannot be compared: one is missing, or is of another list of strings.
    """
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return None
    if old.get("strings") != new.get("strings") or old.get("strings") != _digest(STRINGS):
        return None
    then, now = old.get("ids"), new.get("ids")
    if not isinstance(then, list) or not isinstance(now, list) or len(then) != len(now):
        return None
    unlike = (text for text, a, b in zip(STRINGS, then, now, strict=False) if a != b)
    return next(unlike, None)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:_DIGEST_CHARACTERS]
