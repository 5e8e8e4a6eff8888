"""The same answers as conversations, for trainers that take no token ids: only an approximation.

Owns what a conversation says: the prompt's messages, then the answer as one message with its
reasoning inline. Such trainers render a template of their own and encode the text again, so the
ids are not what the model was sent and made, and templates may drop reasoning or add a system turn.
Records without messages or without a text cannot be written so, and are counted.
"""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import orjson

from app.export.records import Example
from app.files.appending import make_folder, sync_folder
from app.files.space import storage_error

_OPENS, _CLOSES = "<think>", "</think>"


class ConversationShard:
    """Written beside, renamed by `close`. `n_left_out`: records that are no conversation."""

    def __init__(self, path: Path) -> None:
        self._path, self._beside = path, path.with_name(f".{path.name}.part")
        self.n_left_out = 0
        try:
            make_folder(path.parent)
            self._file: BinaryIO = self._beside.open("wb", buffering=1 << 20)
        except OSError as error:
            raise storage_error(path, "write", error, then="merge again") from error

    def add(self, example: Example) -> None:
        said = answer_of(example)
        if said is None or example.before is None:
            self.n_left_out += 1
            return
        record = {
            "id": f"{example.partition}/{example.key}",
            "conversations": [*example.before, {"role": "assistant", "content": said}],
        }
        try:
            self._file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise storage_error(self._path, "write", error, then="merge again") from error

    def close(self) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._beside.replace(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise storage_error(self._path, "write", error, then="merge again") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._file.close()
            self._beside.unlink(missing_ok=True)


def answer_of(example: Example) -> str | None:
    """Return the answer's text with its reasoning inline, the opening mark put back.

    A prompt may have opened the reasoning, and then the text begins inside it.
    """
    if example.text is None:
        return None
    begins_inside = example.reasoning.is_thinking and not example.text.startswith(_OPENS)
    if begins_inside and (_CLOSES in example.text or example.reasoning.is_unclosed):
        return f"{_OPENS}{example.text}"
    return example.text
