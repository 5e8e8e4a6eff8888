"""Reads one answer of `/generate`, streamed or not, cumulative or incremental, to its end.

The accumulator is the only reader of chunks. Invariant: its ids never shrink and are exactly the
first ids of the answer; whatever cannot be proven by `completion_tokens` marks the stream broken.
Sources: SGLang protocol, streaming modes by version (0.5.2 to 0.5.23), and recorded answers of
0.5.9 and 0.5.23 (tests/contract/recordings).
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from app.core.types import AttemptEnd, EndKind
from app.sglang.bodies import cut, error_in, parse_json

_DONE = b"[DONE]"

NO_IDS = "the server returned no output token ids"


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
    saw_done: bool = False
    came_whole: bool = False
    _text: str = ""
    _text_parts: list[str] = field(default_factory=list)
    _buffer: bytes = b""
    _has_uncounted: bool = False

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

    def feed(self, chunk: bytes) -> bool:
        """Take bytes as they arrive, split or joined anywhere; return whether it is over."""
        if self.is_over:
            return True
        if (
            not self._buffer
            and chunk.startswith(b"data: {")
            and chunk.find(b"\n") == len(chunk) - 2
        ):
            # One event, whole: what nearly every chunk is.
            if self._event(chunk[6:-2]):
                return bool(self.broken)
            return self.is_over
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
        return self.is_over

    def whole(self, body: bytes) -> None:
        """Take a plain JSON answer: one terminal event."""
        self.came_whole = True
        try:
            content = parse_json(body)
        except ValueError:
            self.broken = f"the body is not JSON: {cut(body)}"
            return
        if isinstance(content, list) and len(content) == 1:
            content = content[0]
        self._take(content)
        self.saw_done = True

    def _event(self, payload: bytes) -> bool:
        """Take one event; return whether it was a usual one of an answer's middle."""
        if payload == _DONE:
            self.saw_done = True
            return False
        try:
            content = orjson.loads(payload)
        except orjson.JSONDecodeError:
            content = self._odd_json(payload)
        if self._take_usual(content):
            return True
        if not self.broken:
            self._take(content)
        return False

    def _odd_json(self, payload: bytes) -> object:
        try:
            return parse_json(payload)
        except ValueError:
            self.broken = f"an event is not JSON: {cut(payload)}"
            return None

    def _take_usual(self, content: object) -> bool:
        """Take an event of the middle of an answer, cheaply; False for anything else."""
        if type(content) is not dict or "error" in content:
            return False
        meta, ids = content.get("meta_info"), content.get("output_ids")
        if type(meta) is not dict or type(ids) is not list or self.prompt_tokens is None:
            return False
        n = meta.get("completion_tokens")
        if type(n) is not int or meta.get("finish_reason") is not None:
            return False
        self._accumulate(ids, n, is_abort=False)
        self._take_text(content.get("text"))
        return True

    def _take(self, content: object) -> None:
        if not isinstance(content, dict):
            self.broken = f"an event is not an object: {cut(repr(content).encode())}"
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
            if finish is None or is_abort:
                # Ids that no count vouches for are not ids yet.
                self._has_uncounted = self._has_uncounted or bool(ids)
                return
            if self.ids or self._has_uncounted:
                self.broken = "the final event does not say how many tokens the answer has"
                return
            n = len(ids)  # it is the only one, so it holds the whole answer
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
            lacks_ids = self.broken.startswith(NO_IDS)
            kind, message = EndKind.NO_IDS if lacks_ids else EndKind.BROKEN, self.broken
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
