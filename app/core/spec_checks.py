"""Reading one table of a spec: each value is checked, each problem is noted, none stops the rest.

Owns the wording of problems: place, value, remedy. Knows no key of the spec by name.
Invariant: a getter that notes a problem returns its default, so that reading can go on; the
caller raises once, at the end.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time
from typing import TypeVar
from urllib.parse import urlsplit

from app.core.deadlines import deadline_problem
from app.core.spec import parse_tokens

T = TypeVar("T")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt word: the nearest known one, or all of them."""
    choices = sorted(known)
    return nearest(word, choices) or f"known: {', '.join(choices)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint for a word that resembles a known one, nothing if it does not."""
    near = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def said_of(place: str, complaint: str) -> str:
    """Return place and complaint as one sentence: a colon only before a value or a new clause."""
    is_verb = complaint.startswith(("is ", "belongs "))
    return f"{place} {complaint}" if is_verb else f"{place}: {complaint}"


def as_shown(value: object) -> str:
    """Return a value as the writer of a TOML file would recognise it, cut to a line."""
    if isinstance(value, bool):
        return str(value).lower()
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."  # noqa: PLR2004 - one line


class TableReader:
    """Takes values out of one table and notes what is wrong with them."""

    def __init__(self, table: Mapping[str, object], place: str, problems: list[str]) -> None:
        self._table = table
        self._place = place
        self._problems = problems
        self._asked: set[str] = set()

    def note(self, key: str, complaint: str) -> None:
        self._problems.append(said_of(f"{self._place}.{key}", complaint))

    def raw(self, key: str) -> object:
        """Return the value as it stands, None if absent; the key counts as known."""
        self._asked.add(key)
        return self._table.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a non-empty text. Without a default the key must be there."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if value is None:
            self.note(key, "is missing; it has no default")
        elif not isinstance(value, str) or not value.strip():
            self.note(key, f"{as_shown(value)} is not a text with something in it")
        else:
            return value
        return default or ""

    def text_or_none(self, key: str) -> str | None:
        return None if self.raw(key) is None else self.text(key) or None

    def whole(self, key: str, default: int, low: int, high: int) -> int:
        """Return a whole number within low and high."""
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.note(key, f"{as_shown(value)} is not a whole number from {low:,} to {high:,}")
            return default
        return value

    def whole_or_none(self, key: str, low: int, high: int) -> int | None:
        return None if self.raw(key) is None else self.whole(key, low, low, high)

    def required_whole(self, key: str, low: int, high: int) -> int:
        if self.raw(key) is None:
            self.note(key, f"is missing; give a whole number from {low:,} to {high:,}")
        return self.whole(key, low, low, high)

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """Return a number within low and high, seconds or a share."""
        value = self.raw(key)
        if value is None:
            return default
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            self.note(key, f"{as_shown(value)} is not a number from {low:,.10g} to {high:,.10g}")
            return default
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.note(key, f"{as_shown(value)} is neither true nor false")
            return default
        return value

    def one_of(self, key: str, default: T, choices: Mapping[str, T]) -> T:
        """Return the chosen value of a closed list of words."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            hint = nearest(str(value), choices)
            said = f"{as_shown(value)} is not one of {', '.join(choices)}"
            self.note(key, f"{said}; {hint}" if hint else said)
            return default
        return choices[value]

    def tokens_or_none(self, key: str) -> int | None:
        """Return a number of tokens such as 10M."""
        value = self.raw(key)
        if value is None:
            return None
        try:
            return parse_tokens(value)
        except ValueError as problem:
            self.note(key, str(problem))
            return None

    def deadline_or_none(self, key: str) -> str | None:
        """Return a deadline as it was written; TOML's own times and dates are taken too."""
        value = self.raw(key)
        if value is None:
            return None
        written = value.isoformat() if isinstance(value, date | time) else value
        problem = deadline_problem(written)
        if problem:
            self.note(key, problem)
        return None if problem else str(written)

    def table(self, key: str) -> Mapping[str, object]:
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.note(key, f"{as_shown(value)} is not a table such as {{ thinking = true }}")
            return {}
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text alone is a list of one."""
        return self._several(key, "texts", lambda value: isinstance(value, str))

    def ids_or_none(self, key: str) -> tuple[int, ...] | None:
        """Return token ids; one id alone is a list of one."""
        found: tuple[int, ...] = self._several(
            key, "token ids", lambda value: type(value) is int and value >= 0
        )
        return found or None

    def _several(self, key: str, what: str, is_good: Callable[[object], bool]) -> tuple[T, ...]:
        value = self.raw(key)
        if value is None:
            return ()
        members = value if isinstance(value, list) else [value]
        if not all(is_good(member) for member in members):
            self.note(key, f"{as_shown(value)} is not a list of {what}")
            return ()
        return tuple(members)

    def finish(self, belongs: Callable[[str], str]) -> None:
        """Note every key that nobody asked for: where it belongs, or the known one it resembles.

        `belongs` returns the tables that know the key, in words; nothing if none does.
        """
        for key in self._table:
            if key in self._asked:
                continue
            place = belongs(key)
            hint = did_you_mean(key, self._asked)
            self.note(key, f"belongs in {place}" if place else f"is not known here; {hint}")


def server_urls(given: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the addresses in their plain form, and what is wrong with them."""
    plain: list[str] = []
    problems = []
    for value in given:
        url, problem = _server_url(value.strip())
        if problem:
            problems.append(problem)
        elif url in plain:
            problems.append(f'"{url}" is given twice; keep one')
        plain.append(url)
    return tuple(plain), problems


def _server_url(value: str) -> tuple[str, str | None]:
    """Return the address in its plain form, and what is wrong with it or None."""
    parts = urlsplit(value)
    plain = f"{parts.scheme}://{parts.netloc}"
    wanted = "write http://host:port or https://host:port"
    try:
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return plain, f'"{value}" has no usable port; {wanted}'
    if parts.scheme not in {"http", "https"} or not has_host:
        guess = f'; did you mean "http://{value}"?' if "://" not in value else ""
        return plain, f'"{value}" is not an address of a server; {wanted}{guess}'
    if parts.username is not None:
        remedy = "take it out; the server's key comes from LONGWATCH_API_KEY"
        return f"{parts.scheme}://{parts.hostname}", f"an address must not hold a login; {remedy}"
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        return plain, f'"{value}" has more than host and port; write "{plain}"'
    return plain, None
