"""Reads one answer of `/generate`, streamed or not, cumulative or incremental, to its end.

The accumulator is the only reader of chunks. Invariant: its ids never shrink and are exactly the
first ids of the answer; whatever cannot be proven by `completion_tokens` marks the stream broken.
Sources: SGLang protocol, streaming modes by version (0.5.2 to 0.5.23), and recorded answers of
0.5.9 and 0.5.23 (tests/contract/recordings).
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

import json
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from app.core.types import AttemptEnd, EndKind

_DONE = b"[DONE]"
_MAX_MESSAGE = 400

NO_IDS = "the server returned no output token ids"


def parse_json(body: bytes) -> object:
    """Parse JSON; NaN and Infinity, which some servers write for log-probabilities, pass too.

    Raises ValueError for anything else.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)


@dataclass(slots=True)
class Answer:
    """An answer on its way in. `ids` grows while it streams; read it at any time.

    `text_is_delta`: this server sends the new text only (incremental mode from 0.5.10 on).
    """

    text_is_delta: bool = False
    on_first_ids: Callable[[], None] | None = None
    ids: array[int] = field(default_factory=lambda: array("I"))
    broken: str = ""
    finish_reason: object = None
    is_finished: bool = False
    error: AttemptEnd | None = None
    prompt_tokens: int | None = None
    weight_version: str | None = None
    n_events: int = 0
    saw_done: bool = False
    _text: str = ""
    _text_parts: list[str] = field(default_factory=list)
    _buffer: bytes = b""

    @property
    def is_over(self) -> bool:
        """Nothing that may still come would change the verdict."""
        return bool(self.broken) or self.is_finished or self.error is not None or self.saw_done

    @property
    def is_complete(self) -> bool:
        """A normal end has come: the last id closes the answer."""
        return self.is_finished and not _is_abort(self.finish_reason)

    @property
    def text(self) -> str | None:
        return self._text + "".join(self._text_parts) or None

    def feed(self, chunk: bytes) -> None:
        """Take bytes as they arrive; events may be split or joined anywhere."""
        buffer = self._buffer + chunk if self._buffer else chunk
        start = 0
        while (end := buffer.find(b"\n", start)) >= 0:
            line = buffer[start:end]
            start = end + 1
            if line.startswith(b"data:"):
                self._event(line[5:].strip())
                if self.is_over:
                    break
        self._buffer = buffer[start:]

    def whole(self, body: bytes) -> None:
        """Take a plain JSON answer: one terminal event."""
        try:
            content = parse_json(body)
        except ValueError:
            self.broken = f"the body is not JSON: {_cut(body)}"
            return
        if isinstance(content, list) and len(content) == 1:
            content = content[0]
        self._take(content)
        self.saw_done = True

    def _event(self, payload: bytes) -> None:
        if payload == _DONE:
            self.saw_done = True
            return
        try:
            content = parse_json(payload)
        except ValueError:
            self.broken = f"an event is not JSON: {_cut(payload)}"
            return
        self.n_events += 1
        self._take(content)

    def _take(self, content: object) -> None:
        if not isinstance(content, dict):
            self.broken = f"an event is not an object: {_cut(repr(content).encode())}"
            return
        self.error = error_in(content)
        if self.error is not None:
            return
        meta = content.get("meta_info")
        meta = meta if isinstance(meta, dict) else {}
        finish = meta.get("finish_reason")
        n_tokens = meta.get("completion_tokens")
        self._take_ids(content, n_tokens, finish, is_abort=_is_abort(finish))
        self._take_facts(meta)
        self._take_text(content.get("text"))
        if finish is not None and not self.broken:
            self.finish_reason = finish
            self.is_finished = True

    def _take_ids(
        self, content: dict[str, object], n: object, finish: object, *, is_abort: bool
    ) -> None:
        ids = content.get("output_ids")
        if not isinstance(ids, list):
            if is_abort and ids is None:
                return
            if finish is not None or (isinstance(n, int) and n > 0):
                self.broken = NO_IDS
            return
        if not isinstance(n, int):
            # Ids that no count vouches for are not ids yet; a final event must have its count.
            if finish is not None and not is_abort:
                n = len(self.ids) + len(ids) if self.ids else len(ids)
            else:
                return
        self._accumulate(ids, n, is_abort=is_abort)

    def _accumulate(self, ids: list[object], n: int, *, is_abort: bool) -> None:
        """Join a chunk: cumulative if it is as long as the count, else the missing part.

        An abort chunk may hold anything (one id of a whole answer, an id already sent, a made-up
        one after a refusal), so it is taken only where it fits exactly, and ignored elsewhere.
        """
        have = len(self.ids)
        if len(ids) == n and n >= have:
            fresh = ids[have:]
        elif have + len(ids) == n:
            fresh = ids
        elif is_abort:
            return
        else:
            self.broken = f"gap in the stream: {have} ids, then {len(ids)} more, {n} by its count"
            return
        if is_abort and have == 0 and n <= 1:
            return  # one token of a dummy prompt stands in refusals; it is nobody's answer
        try:
            self.ids.extend(fresh)  # type: ignore[arg-type]  # array checks each: int, 0..2**32
        except (TypeError, OverflowError):
            self.broken = f"{NO_IDS}: not a list of integers"
            del self.ids[have:]
            return
        if self.on_first_ids is not None and self.ids:
            announce, self.on_first_ids = self.on_first_ids, None
            announce()

    def _take_facts(self, meta: dict[str, object]) -> None:
        prompt_tokens = meta.get("prompt_tokens")
        if isinstance(prompt_tokens, int):
            self.prompt_tokens = prompt_tokens
        version = meta.get("weight_version")
        if isinstance(version, str):
            self.weight_version = version

    def _take_text(self, text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        if self.text_is_delta:
            self._text_parts.append(text)
        else:
            self._text = text

    def end(self) -> AttemptEnd:
        """Return the verdict after the last byte, or after `is_over`."""
        if self.error is not None:
            return AttemptEnd(
                kind=self.error.kind,
                ids=self.ids,
                status=self.error.status,
                message=self.error.message,
                reported_prompt_tokens=self.prompt_tokens,
            )
        kind, message = EndKind.FINISHED, ""
        if self.broken:
            kind, message = EndKind.BROKEN, self.broken
        elif not self.is_finished and not self.saw_done:
            kind, message = EndKind.CUT, "the connection closed before the final event"
        return AttemptEnd(
            kind=kind,
            ids=self.ids,
            text=self.text,
            finish_reason=self.finish_reason,
            message=message,
            reported_prompt_tokens=self.prompt_tokens,
        )


def _is_abort(finish: object) -> bool:
    return isinstance(finish, dict) and finish.get("type") == "abort"


def error_in(content: dict[str, object]) -> AttemptEnd | None:
    """Return the error that a body or event holds, in any of the server's five shapes."""
    error = content.get("error")
    code: object = content.get("code")
    if isinstance(error, dict):
        message, code = error.get("message", error), error.get("code", code)
    elif error is not None:
        message = error
    elif content.get("object") == "error":
        message = content.get("message", "")
    else:
        return None
    status = code if isinstance(code, int) else None
    kind = EndKind.BUSY if status in (429, 503) else EndKind.ERROR
    return AttemptEnd(kind=kind, status=status, message=_cut(str(message).encode()))


def message_of(body: bytes) -> str:
    """Return what an error body says, shortened: it may echo the whole prompt."""
    try:
        content = parse_json(body)
    except ValueError:
        return _cut(body)
    if isinstance(content, dict):
        found = error_in(content)
        if found is not None:
            return found.message
        detail = content.get("detail", content.get("message"))
        if detail is not None:
            return _cut(str(detail).encode())
    return _cut(body)


def _cut(content: bytes) -> str:
    shown = content[:_MAX_MESSAGE].decode("utf-8", "replace")
    return shown + "…" if len(content) > _MAX_MESSAGE else shown
