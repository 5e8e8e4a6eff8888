"""`export`: the valid lines of a run so far, in input order, at any time.

Invariant: what is written are the bytes of the run's own files, whole lines only; nothing of the
run is changed, and its own output folders are never written to.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import EXIT_OK, HomeOption, epilog
from app.cli.remote import open_ledger
from app.cli.voice import say
from app.controls import find_run
from app.core.format import plural
from app.core.views import PartitionView, RunView
from app.errors import InputError, StorageError
from app.files.ownership import OWNER_FILE
from app.files.sealed import LineSource, write_sealed
from app.files.space import storage_error
from app.ledger import runs, shards
from app.ledger.db import Ledger
from app.settings import load_settings

_PAGE = 2_000
_TRIES = 5


def add_commands(application: typer.Typer) -> None:
    application.command(epilog=epilog("longwatch export night /data/so-far"))(export)


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Number or name.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to.")],
    home: HomeOption = None,
) -> int:
    """Copy the answers so far to DIR/<partition>/responses.jsonl, in input order."""
    ledger = open_ledger(load_settings(home=home).home)
    try:
        found = find_run(ledger, run)
        _refuse_outputs(found, folder)
        total = 0
        for partition in runs.partitions_of(ledger, found.id):
            target = folder / partition.name / "responses.jsonl"
            n = _export_partition(ledger, partition, target)
            say(f"{partition.name}: {plural(n, 'answer')} to {target}")
            total += n
    finally:
        ledger.close()
    say(f'run {found.id} "{found.name}" ({found.state}): {plural(total, "answer")} in {folder}')
    return EXIT_OK


def _refuse_outputs(run: RunView, folder: Path) -> None:
    wanted, output = folder.resolve(), Path(run.output_dir).resolve()
    if wanted == output or wanted.is_relative_to(output) or (folder / OWNER_FILE).exists():
        raise InputError(
            f"{folder} is an output folder of a run", hint="Name another folder for the copy"
        )


def _export_partition(ledger: Ledger, partition: PartitionView, target: Path) -> int:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(target.parent, "make", error, then="export again") from error
    with LineSource() as source:
        return write_sealed(target, _lines(ledger, partition, source)).n_lines


def _lines(ledger: Ledger, partition: PartitionView, source: LineSource) -> Iterator[bytes]:
    """Yield the lines; a page is asked for again if its files were just replaced by sealed ones."""
    after, tries = -1, 0
    while page := shards.valid_lines(ledger, partition.id, after, _PAGE):
        for position, place in page:
            try:
                line = source.read(Path(place.path), place.offset, place.n_bytes)
            except StorageError:
                tries += 1
                source.close()
                if tries >= _TRIES:
                    raise
                break
            yield line
            after, tries = position, 0
