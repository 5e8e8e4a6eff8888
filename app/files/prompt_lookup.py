"""One prompt for people who look: the record of that number, or why it is not shown.

Owns how far it looks: a prompt file has no index, so it is read from its beginning, and no further
than a bound. Invariant: what is returned is the prompt that the ledger knows, by its digest.
"""

from array import array
from pathlib import Path

from app.core.format import size
from app.errors import InputError, StorageError
from app.files.prompt_records import Prompt, parse_line
from app.files.prompt_streams import unpacked
from app.files.space import storage_error
from app.files.tokens import TOKEN_BYTES, from_bytes

MOST_READ_BYTES = 64_000_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def prompt_at(path: Path, index: int, prompt_sha256: str) -> Prompt:
    """Return the prompt of that record number; StorageError says why it cannot be shown."""
    if path.suffix == ".parquet":
        raise StorageError(f"{path} is a Parquet file; records are not looked up in those")
    if not path.is_file():
        raise StorageError(f"{path} is not there any more")
    line, number = _line_of(path, index)
    found = parse_line(line.removeprefix(_BYTE_ORDER_MARK), index, number)
    if not isinstance(found, Prompt) or found.prompt_sha256 != prompt_sha256:
        raise StorageError(f"{path} has been changed: record {index:,} is no longer this prompt")
    return found


def _line_of(path: Path, index: int) -> tuple[bytes, int]:
    """Return the bytes and the line number of the record, blank lines not counted."""
    n_bytes, at = 0, -1
    try:
        with unpacked(path) as (lines, _):
            number = 0
            while line := lines.readline(MOST_READ_BYTES - n_bytes + 1):
                number += 1
                n_bytes += len(line)
                if n_bytes > MOST_READ_BYTES:
                    raise StorageError(
                        f"record {index:,} stands further down in {path} than the"
                        f" {size(MOST_READ_BYTES)} that are looked through"
                    )
                at += not line.isspace()
                if at == index:
                    return line, number
    except InputError as error:
        raise StorageError(error.message) from error
    raise StorageError(f"{path} has been changed: it has no record {index:,} any more")


def prompt_ids_at(path: Path, offset_tokens: int, n_tokens: int) -> "array[int]":
    """Return the ids of a prompt out of a token file, which is only read."""
    try:
        with path.open("rb") as file:
            file.seek(offset_tokens * TOKEN_BYTES)
            packed = file.read(n_tokens * TOKEN_BYTES)
    except OSError as error:
        raise storage_error(path, "read", error) from error
    if len(packed) != n_tokens * TOKEN_BYTES:
        raise StorageError(f"{path} ends before token {offset_tokens + n_tokens:,}")
    return from_bytes(packed)
