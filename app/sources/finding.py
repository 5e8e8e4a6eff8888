"""Which files a source reads: files as they are named, folders file by file in sorted order.

Owns what is looked for in a folder and how a file is called in records. Invariant: everything
that is wrong with the paths of a spec is found before anything is read.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from app.core.spec import SpecError
from app.files.spec_files import spec_errors_as_input
from app.sources.readers import PACKINGS, TABLE_KINDS, TEXT_KINDS, kind_of_file
from app.sources.spec import PrepareSpec, SourceSpec

# what `datasets` itself writes beside the rows
_NO_ROWS = frozenset({"dataset_info.json", "dataset_dict.json", "dataset_infos.json", "state.json"})
_KINDS = (
    f"read are {', '.join((*TEXT_KINDS, *TABLE_KINDS))},"
    f" the first {len(TEXT_KINDS)} also with {' or '.join(PACKINGS)}"
)


class SourceFile(NamedTuple):
    """A file to read. `label` is what records and reports call it."""

    path: Path
    label: str


def find_sources(spec: PrepareSpec, spec_path: Path) -> dict[str, list[SourceFile]]:
    """Return the files of each source, in reading order; InputError with all that is wrong.

    One file that is named twice, also through a symlink, is refused (inp-13).
    """
    problems: list[str] = []
    owners: dict[tuple[int, int], str] = {}
    found: dict[str, list[SourceFile]] = {}
    for source in spec.sources:
        found[source.name] = []
        for file in _files_of(source, spec.folder, problems):
            facts = file.path.stat()
            owner = owners.get((facts.st_dev, facts.st_ino))
            if owner is not None:
                problems.append(
                    f"[source.{source.name}].path: {file.path} is read by"
                    f" [source.{owner}] already; name it once"
                )
            owners.setdefault((facts.st_dev, facts.st_ino), source.name)
            found[source.name].append(file)
    with spec_errors_as_input():
        if problems:
            raise SpecError(str(spec_path), problems)
    return found


def _files_of(source: SourceSpec, folder: Path, problems: list[str]) -> Iterator[SourceFile]:
    for text in source.paths:
        path = Path(text)
        try:
            files = _in_folder(path) if path.is_dir() else [path]
            problem = _problem(path, files)
        except OSError as error:
            problem = f"cannot read {error.filename}: {error.strerror}; check its rights"
        if problem is None:
            yield from (SourceFile(file, _label(file, folder)) for file in files)
        else:
            problems.append(f"[source.{source.name}].path: {problem}")


def _problem(path: Path, files: list[Path]) -> str | None:
    if not files:
        return f"{path} has no file of rows; {_KINDS}"
    if not path.exists():
        return f"there is no {path}; it is seen from the folder of the spec"
    if path.is_file() and kind_of_file(path.name) is None:
        return f"{path} is of no kind that can be read; {_KINDS}"
    bad = next((file for file in files if not os.access(file, os.R_OK)), None)
    return None if bad is None else f"{bad} may not be read; check its rights"


def _in_folder(folder: Path) -> list[Path]:
    """Return the files of rows below a folder by sorted path; nothing hidden is entered."""
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            found += _in_folder(entry)
        elif entry.is_file() and kind_of_file(entry.name) and entry.name not in _NO_ROWS:
            found.append(entry)
    return found


def _label(path: Path, folder: Path) -> str:
    """Return the path as seen from the spec, so that it says the same where both are moved."""
    label = str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
    return label.encode(errors="replace").decode()  # a name that is no UTF-8 fits no JSON
