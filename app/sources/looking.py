"""A look at the beginning of each source: what it is, and whether it could be prepared.

Owns what `longwatch prepare --check` finds out. Invariant: nothing is written, and of each source
no more is read than its first rows.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path

from app.errors import LongwatchError
from app.sources.finding import SourceFile
from app.sources.preparing import Partition
from app.sources.publishing import records_file
from app.sources.readers import Position
from app.sources.rows import LOOK_ROWS, recipe_of, rows_of
from app.sources.spec import PrepareSpec, SourceSpec
from app.sources.tally import Tally
from app.sources.writing import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the first rows of a source show; `problem` is what would keep it from being prepared."""

    name: str
    n_files: int
    recipe: str = ""
    is_recognised: bool = False
    mode: str = ""
    tally: Tally
    problem: str | None = None
    notice: str | None = None


def look(spec: PrepareSpec, source: SourceSpec, files: Sequence[SourceFile]) -> Look:
    """Read the first rows of a source as a preparation would."""
    rows = rows_of(source, files, Position(), only_a_look=True)
    try:
        first = list(islice(rows, LOOK_ROWS))
        recipe = recipe_of(source, (row for _, (_, row) in first))
        work = Partition(source, recipe, spec.seed)
        work.take_all(iter(first), Draft(BytesIO(), BytesIO(), BytesIO()))
    except LongwatchError as error:
        return Look(name=source.name, n_files=len(files), tally=Tally(), problem=str(error))
    there = spec.output_dir / source.name / records_file(recipe.gives)
    return Look(
        name=source.name,
        n_files=len(files),
        recipe=recipe.name,
        is_recognised=source.recipe is None and source.columns is None,
        mode=work.mode,
        tally=work.tally,
        problem=_unusable(work.tally) or _unwritable(there.parent),
        notice=f"{there} is there: --overwrite replaces it" if there.exists() else None,
    )


def _unusable(tally: Tally) -> str | None:
    if tally.n_kept or not tally.n_rows:
        return None
    reasons = ", ".join(f"{n} {reason}" for reason, n in tally.in_order().items())
    return f"none of the first {tally.n_rows} rows can be used ({reasons}); is it the right recipe?"


def _unwritable(folder: Path) -> str | None:
    above = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    if not above.is_dir():
        return f"{above} is not a folder; take another output_dir"
    return None if os.access(above, os.W_OK | os.X_OK) else f"{above} may not be written to"
