"""How a sample came to be what it is: its attempts, whose requests made its tokens, its line. Pure.

Times stand in the draft, so that a browser shows its own clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.core import format as words
from app.core.visible import visible_line
from app.ledger.one_sample import MAX_ATTEMPTS_SHOWN, HeldEntry
from app.web.draft import Draft
from app.web.samples.reading import Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`attempts`: number, cell of its time, tokens, charged, reason. `times`: name and cell."""

    attempts: tuple[tuple[str, str, str, bool, str], ...]
    attempts_note: str
    segments: tuple[str, ...]
    held: tuple[str, ...]
    times: tuple[tuple[str, str], ...]
    line: str


def history_of(draft: Draft, opened: Opened) -> History:
    """Return the history of a sample."""
    whole, answer = opened.whole, opened.answer or {}
    attempts = []
    for place, each in enumerate(whole.attempts):
        cell = f"at-{place}"
        draft.clock(cell, each.at)
        attempts.append(
            (
                words.whole(each.attempt),
                cell,
                words.whole(each.tokens),
                each.is_charged,
                visible_line(each.reason),
            )
        )
    line = whole.line
    return History(
        attempts=tuple(attempts),
        attempts_note=f"The latest {MAX_ATTEMPTS_SHOWN}."
        if len(attempts) >= MAX_ATTEMPTS_SHOWN
        else "",
        segments=tuple(_segments(answer.get("segments"))),
        held=tuple(_held(whole.held)),
        times=tuple(_times(draft, answer)),
        line="" if line is None else f"{line.path}, byte {line.offset:,}, {line.n_bytes:,} bytes",
    )


def _segments(segments: object) -> Iterator[str]:
    """Give a sentence for each request that made a part of the answer."""
    if not isinstance(segments, Sequence) or isinstance(segments, str):
        return
    for each in segments:
        if isinstance(each, Mapping):
            yield _made(each.get("from_token"), each.get("rid"), each.get("server"))


def _held(held: Sequence[HeldEntry]) -> Iterator[str]:
    for each in held:
        yield _made(each.from_token, each.rid, each.server)


def _made(from_token: object, rid: object, server: object) -> str:
    by = f"by request {visible_line(str(rid))} on server {visible_line(str(server))}"
    if not isinstance(from_token, int) or from_token == 0:
        return f"Begun {by}."
    return f"Continued at token {from_token:,} {by}."


def _times(draft: Draft, answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, field in (("Started", "started_at"), ("Finished", "finished_at")):
        at = _moment(answer.get(field))
        if at is not None:
            draft.clock(f"t-{field}", at)
            yield name, f"t-{field}"


def _moment(given: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
