"""How a sample came to be what it is: its attempts, whose requests made its tokens, its line. Pure.

Times stand in the draft, so that a browser shows its own clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.core import format as words
from app.core.states import KEPT
from app.core.visible import visible_line
from app.ledger.one_sample import MAX_ATTEMPTS_SHOWN, HeldEntry, SampleWhole
from app.web.draft import Draft
from app.web.samples.reading import Opened
from app.web.wording import DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`attempts`: number, cell of time, tokens, how it counts, reason. `times`: name and cell."""

    attempts: tuple[tuple[str, str, str, str, str], ...]
    attempts_notes: tuple[str, ...]
    segments: tuple[str, ...]
    held: tuple[str, ...]
    times: tuple[tuple[str, str], ...]
    line: str


def history_of(draft: Draft, opened: Opened) -> History:
    """Return the history of a sample."""
    whole, answer = opened.whole, opened.answer or {}
    line = whole.line
    return History(
        attempts=tuple(_attempts(draft, opened)),
        attempts_notes=tuple(_notes(opened)),
        segments=tuple(_segments(answer.get("segments"))),
        held=tuple(_held(whole.held)),
        times=tuple(_times(draft, answer)),
        line="" if line is None else f"{line.path}, byte {line.offset:,}, {line.n_bytes:,} bytes",
    )


def n_forgiven(whole: SampleWhole) -> int:
    """Return how many charged attempts do not count any more: a retry, an extension begin anew."""
    return max(0, sum(each.is_charged for each in whole.attempts) - whole.entry.charged)


def _attempts(draft: Draft, opened: Opened) -> Iterator[tuple[str, str, str, str, str]]:
    """Give what is noted of attempts, then the one that made the answer."""
    whole = opened.whole
    n_old = n_forgiven(whole)
    for place, each in enumerate(whole.attempts):
        cell = f"at-{place}"
        draft.clock(cell, each.at)
        counts = "free" if not each.is_charged else "charged" if n_old <= 0 else "forgiven"
        n_old -= each.is_charged
        reason = visible_line(each.reason)
        yield words.whole(each.attempt), cell, words.whole(each.tokens), counts, reason
    if whole.attempts and _is_kept_by_the_last(whole):
        answer = opened.answer or {}
        draft.clock("at-kept", _moment(answer.get("finished_at")), otherwise=DASH)
        tokens = words.whole(whole.entry.output_tokens - _begun_at(answer.get("segments")))
        yield words.whole(whole.entry.attempt), "at-kept", tokens, "kept", "made the answer"


def _is_kept_by_the_last(whole: SampleWhole) -> bool:
    """Return whether the newest attempt made the answer; one that failed is noted itself."""
    noted = {each.attempt for each in whole.attempts}
    return whole.entry.state in KEPT and whole.entry.attempt not in noted


def _begun_at(segments: object) -> int:
    """Return at which token the last request went on with the answer."""
    last = segments[-1] if isinstance(segments, list) and segments else {}
    begun = last.get("from_token") if isinstance(last, dict) else None
    return begun if isinstance(begun, int) else 0


def _notes(opened: Opened) -> Iterator[str]:
    whole = opened.whole
    n = len(whole.attempts)
    if n >= MAX_ATTEMPTS_SHOWN:
        yield f"The latest {MAX_ATTEMPTS_SHOWN}."
    elif n and n + _is_kept_by_the_last(whole) < whole.entry.attempt:
        yield "Attempts that were put back without a charge, or are under way, are not listed."
    if n_forgiven(whole):
        yield "Forgiven: charged before a retry or an extension, with which counting began anew."


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
