"""Where in a pasted spec a complaint is about: the line of its table or key. Pure.

A search by words, no parser: what is written in an unusual way has no line, never a wrong one of
another table.
"""

import re

from app.web.new_run.fields import Complaints

_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_PLACE = re.compile(r"\[([^\]]*)\](?:\.(\w+))?")


def with_lines(found: Complaints, text: str) -> tuple[str, ...]:
    """Return all complaints as sentences, each with the line that it is about, if that is known.

    >>> text = '[run]' + chr(10) + 'name = 7'
    >>> with_lines(Complaints(by_field={}, others=("[run].name: 7 is not a text",)), text)
    ('line 2: [run].name: 7 is not a text',)
    """
    told = []
    for complaint in found.others:
        place = _PLACE.match(complaint)
        line = line_of(text, place[1], place[2]) if place else None
        told.append((line or 0, f"line {line}: {complaint}" if line else complaint))
    return tuple(sentence for _, sentence in sorted(told, key=lambda one: one[0]))


def line_of(text: str, table: str, key: str | None) -> int | None:
    """Return the line, from 1, of a key of a table, or of its header where the key is not there."""
    header, inside = None, False
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _HEADER.fullmatch(line):
            inside = _plain(found[1]) == _plain(table)
            header = number if inside else header
        elif inside and key and re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", line):
            return number
    return header


def _plain(table: str) -> str:
    return re.sub(r"[\s\"']", "", table)
