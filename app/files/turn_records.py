"""The records of a prompt file that are asked turn by turn, each found at once by its number.

Owns a copy of them in a file without a name, made by one pass; it is gone with the process. A
prompt file may be packed and has no index, and later turns come in no order. Invariant: what is
handed out stood in a file of the digest that the run was started with.
"""

import tempfile
from array import array
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import orjson

from app.errors import InputError
from app.files.prompt_ids import file_sha256
from app.files.prompts import Prompt, scan
from app.files.space import storage_error


class TurnRecords:
    """Used from one thread at a time. `folder` is where the copy lies, `sha256` of the file."""

    def __init__(self, path: Path, folder: Path, sha256: str | None) -> None:
        self._path = path
        self._folder = folder
        self._sha256 = sha256
        self._places = array("Q")  # offset and bytes of each record, 0 bytes: not one of these
        self._file: IO[bytes] | None = None

    def at(self, index: int) -> Prompt:
        """Return the record of that number; InputError if the file is not what was scanned."""
        if self._file is None:
            self._copy()
        offset, n_bytes = self._places[2 * index : 2 * index + 2] or (0, 0)
        if not n_bytes or self._file is None:
            raise InputError(
                f"{self._path} is not what was scanned: record {index + 1} asks for one turn",
                hint="put the file back as it was, then resume the partition",
            )
        self._file.seek(offset)
        key, line, messages, tools, sampling, kwargs, later = orjson.loads(self._file.read(n_bytes))
        return Prompt(
            index, line, key, None, None, messages, tools, sampling, kwargs, "", tuple(later)
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _copy(self) -> None:
        if self._sha256 is not None and file_sha256(self._path) != self._sha256:
            raise InputError(
                f"{self._path} is not what was scanned: its content has changed",
                hint="put the file back as it was, then resume the partition",
            )
        places = array("Q")
        with ExitStack() as stack:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(tempfile.TemporaryFile(dir=self._folder))
                for record in scan(self._path):
                    kept = _packed(record) if isinstance(record, Prompt) and record.later else b""
                    places.extend((file.tell(), len(kept)))
                    file.write(kept)
            except OSError as error:
                raise storage_error(self._folder, "write", error) from error
            stack.pop_all()
        self._places, self._file = places, file


def _packed(prompt: Prompt) -> bytes:
    return orjson.dumps(
        [
            prompt.key,
            prompt.line,
            prompt.messages,
            prompt.tools,
            dict(prompt.sampling),
            dict(prompt.chat_template_kwargs),
            prompt.later,
        ]
    )
