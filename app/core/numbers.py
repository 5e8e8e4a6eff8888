"""Numbers as people type them and as addresses carry them. Pure; nothing here raises on any text.

Owns the bounds: what is longer than any number that is meant here is no number.
"""

import re

MAX_ROW_ID = 2**63 - 1  # SQLite's, and of PostgreSQL's bigint
_ROW_ID = re.compile(r"[0-9]{1,19}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def typed_whole(text: str) -> int | None:
    """Return the whole number that is written, with , or _ between its digits; None if it is none.

    >>> typed_whole(" 1,024"), typed_whole("-4"), typed_whole("--5"), typed_whole("9" * 5000)
    (1024, -4, None, None)
    """
    plain = text.strip().replace(",", "").replace("_", "")
    return int(plain) if _WHOLE.fullmatch(plain) else None


def may_be_row_id(word: str) -> bool:
    """Return whether a word of an address is a number that a row can have.

    >>> [may_be_row_id(word) for word in ("7", "9223372036854775807")]
    [True, True]
    >>> [may_be_row_id(word) for word in ("9223372036854775808", "9" * 5000, "night", "-1")]
    [False, False, False, False]
    """
    return _ROW_ID.fullmatch(word) is not None and int(word) <= MAX_ROW_ID
