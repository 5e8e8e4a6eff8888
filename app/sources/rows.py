"""The rows of one source in order, whatever they lie in, and the recipe that reads them.

Owns the order of files, where a row stands, and how a recipe is chosen: named, made from columns,
or recognised by the first rows.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import repeat

import orjson

from app.errors import InputError
from app.sources import columns, known
from app.sources.contract import Recipe
from app.sources.finding import SourceFile
from app.sources.hub import label_of, read_hub
from app.sources.readers import Numbered, Position, read_rows
from app.sources.spec import SourceSpec

LOOK_ROWS = 100  # so many show what a source holds

Placed = tuple[str, Numbered]  # the file's label as JSON, and what stands where in it


def rows_of(
    source: SourceSpec,
    files: Iterable[SourceFile],
    position: Position,
    *,
    only_a_look: bool = False,
) -> Iterator[Placed]:
    """Yield every row of a source with its place, file by file."""
    if source.hub is not None:
        label = orjson.dumps(label_of(source.hub)).decode()
        yield from zip(repeat(label), read_hub(source.hub, position, only_a_look=only_a_look))
        return
    n_bytes_before = 0
    for file in files:
        label = orjson.dumps(file.label).decode()
        position.start(n_bytes_before)
        yield from zip(repeat(label), read_rows(file.path, position))
        n_bytes_before += file.path.stat().st_size
    position.start(n_bytes_before)


def recipe_of(source: SourceSpec, first: Iterable[object]) -> Recipe:
    """Return the recipe that the spec names, or the one that the first rows show.

    The first row that shows one decides; InputError of the very first row if none does.
    """
    if source.columns is not None:
        return columns.by_columns(source.columns)
    if source.recipe is not None:
        return known.by_name(source.recipe)
    rows = [row for row in first if isinstance(row, dict)]
    for row in rows:
        with suppress(InputError):
            return known.recognised(row, row)
    if rows:
        return known.recognised(rows[0], rows[0])
    raise InputError(
        f"source {source.name} has no row by which its recipe could be recognised",
        hint=f"look at its files, or name it: [source.{source.name}] recipe = ...",
    )
