"""What stands beside merged data when it is whole: manifest, card, token counts.

Owns their names, and that they stand above `data/`: a loader that takes a folder reads every JSON
in it. The manifest is written last. Nothing in them tells when the merge ran, so that the same
inputs give the same bytes.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from app.errors import StorageError
from app.export.card import card_of
from app.export.tally import Merged
from app.files.replacing import replacing
from app.files.sealed import read_manifest, write_manifest

MANIFEST, CARD, FREQUENCY = "manifest.json", "README.md", "token_freq.json"
_FOLDERS = ("data", "parquet", "conversations")


def read(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a whole merge, None if none is there."""
    found = read_manifest(folder / MANIFEST)
    return found if found is not None and "shards" in found else None


def write(folder: Path, identity: str, facts: dict[str, Any], done: Merged) -> None:
    """Write them, the manifest last."""
    frequency = {str(token): n for token, n in sorted(done.frequency.items())}
    _replace(folder / FREQUENCY, orjson.dumps(frequency, option=orjson.OPT_APPEND_NEWLINE))
    _replace(folder / CARD, card_of(facts, done.tallies).encode())
    manifest = {
        "identity": identity,
        **facts,
        "records": sum(each.n_kept for each in done.tallies),
        "tokens": sum(each.n_tokens for each in done.tallies),
        "supervised_tokens": sum(each.n_answer_tokens for each in done.tallies),
        "partitions": [each.stored() for each in done.tallies],
        "without_conversation": done.n_no_conversation,
        "shards": done.shards,
    }
    write_manifest(folder / MANIFEST, manifest)


def remove(folder: Path) -> None:
    """Remove an earlier merge, the manifest first: what is left of it is never taken for whole."""
    for path in _files(folder):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"{path} cannot be removed: {error}") from error


def _files(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in (MANIFEST, CARD, FREQUENCY))
    for name in _FOLDERS:
        with suppress(OSError):
            yield from sorted((folder / name).glob("train-*"))
            yield from sorted((folder / name).glob(".train-*.part"))


def _replace(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
