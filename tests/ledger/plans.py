"""What a piece of the program asks of the ledger, statement by statement, and how SQLite finds it.

For any test that must show that a question costs the same in a large ledger: record what is
executed, explain it, and name what walks over a whole table. Reading its aliases is owned here.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import event
from sqlalchemy.engine import Connection

from app.ledger.db import Ledger

_READS = ("SELECT", "UPDATE", "DELETE", "WITH")
_NOT_AN_ALIAS = frozenset(
    {"where", "order", "group", "join", "left", "inner", "cross", "on", "limit", "set", "union"}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One executed statement, with the parameters of its first execution."""

    statement: str
    parameters: object


@contextmanager
def recorded(ledger: Ledger) -> Iterator[list[Asked]]:
    """Collect everything that is executed on the ledger meanwhile, by whatever thread."""
    with ledger.read() as connection:
        engine = connection.engine
    found: list[Asked] = []

    def note(*details: object) -> None:
        statement, parameters, many = str(details[2]), details[3], details[5]
        one = parameters[0] if many and isinstance(parameters, list) else parameters
        found.append(Asked(statement, one))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(engine, "before_cursor_execute", note)


def explained(ledger: Ledger, asked: Sequence[Asked]) -> dict[str, list[str]]:
    """Return the steps of the query plan of each statement that reads."""
    wanted = {each.statement: each for each in asked if each.statement.split()[0] in _READS}
    with ledger.read() as connection:
        return {text: _plan(connection, each) for text, each in wanted.items()}


def _plan(connection: Connection, asked: Asked) -> list[str]:
    rows = connection.exec_driver_sql(
        f"EXPLAIN QUERY PLAN {asked.statement}",
        asked.parameters,  # type: ignore[arg-type]  # what the driver was given a moment ago
    )
    return [row[3] for row in rows]


def scans(ledger: Ledger, asked: Sequence[Asked], table: str = "sample") -> dict[str, list[str]]:
    """Return the statements that walk over the whole table, or over a whole index of it."""
    found = {}
    for statement, steps in explained(ledger, asked).items():
        names = {table, *_aliases(statement, table)}
        if any(_is_walk(step, names) for step in steps):
            found[statement] = steps
    return found


def _is_walk(step: str, names: set[str]) -> bool:
    """Return whether a step reads all of a table: SQLite says "SEARCH t" of a max without index."""
    what, _, rest = step.partition(" ")
    name = rest.split(" ")[0]
    return name in names and (what == "SCAN" or (what == "SEARCH" and " USING " not in step))


def _aliases(statement: str, table: str) -> set[str]:
    """Return the names under which a statement knows the table."""
    found = re.findall(rf"\b(?:FROM|JOIN|UPDATE|,)\s+{table}\s+(?:AS\s+)?(\w+)", statement, re.I)
    return {name for name in found if name.lower() not in _NOT_AN_ALIAS}
