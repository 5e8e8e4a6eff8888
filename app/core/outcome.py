"""What the end of an attempt means for its sample: kept, put back, failed, or nobody's to serve.

Owns the tables of finish reasons and statuses and the charging rules; the checks of an answer's
ids are in `answer.py` and `loops.py`, delays in `retry.py`. Judging has no effect.
Invariant: nothing is kept without a normal end (stop or length), and no put back is charged that
would take the sample to `max_attempts`.
"""

from __future__ import annotations  # array[int] cannot be written at run time before 3.12

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.core.answer import PROMPTED_WITH, Marks, compact, is_clipped, is_empty, thinking_is_open
from app.core.format import plural
from app.core.loops import loop_period
from app.core.states import SampleState
from app.core.types import AttemptEnd, EndKind, Fail, Halt, Keep, Outcome, PutBack

POISON_DEATHS = 3
LONGEST_RETRY_AFTER_S = 3600.0
LONGEST_MESSAGE = 500  # servers echo the offending body, which may be the whole prompt
FLAG_CLIPPED = "clipped"
FLAG_LOOP = "loop"
FLAG_THINKING = "thinking not closed"

BUSY_STATUSES = frozenset({429, 503})
FAIL_STATUSES = frozenset({400, 413, 422})
HALT_STATUSES = frozenset({401, 403, 404, 405})
NAN_MATCH = "NaN happened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for, and what is known of the sample.

    `prompt_tokens` counts the ids sent, held ones included; `max_new_tokens` is the whole
    sample's. `charged` and `server_deaths` are from before this attempt. `was_alone`: nothing
    else was in flight at the server. `is_trial`: it was the first sample on that server.
    """

    prompt_tokens: int
    held: array[int]
    max_new_tokens: int
    charged: int
    max_attempts: int
    server_deaths: int = 0
    is_trial: bool = False
    was_alone: bool = False
    end_token_ids: frozenset[int] = frozenset()
    think_open: int | None = None
    think_close: int | None = None
    thinking_opened_by_prompt: bool = False
    detect_loops: bool = True


class Finish(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    NAN = "nan"  # "stop" by name, but the model produced no valid token
    UNKNOWN = "unknown"


def finish_type(raw: object) -> Finish:
    """Return what kind of finish reason the raw JSON value is; UNKNOWN for null and all else."""
    name, matched = (raw.get("type"), raw.get("matched")) if isinstance(raw, dict) else (raw, None)
    if name == Finish.STOP and matched == NAN_MATCH:
        return Finish.NAN
    known = {Finish.STOP, Finish.LENGTH, Finish.ABORT}
    return Finish(name) if isinstance(name, str) and name in known else Finish.UNKNOWN


def judge(end: AttemptEnd, asked: Asked, *, server_alive: bool, delay_s: float) -> Outcome:
    """Return what becomes of the sample.

    `server_alive` is asked for only where a cut has to be explained. `delay_s` is the jittered
    backoff for the attempts charged so far.
    """
    return _JUDGES[end.kind](_Attempt(end, asked, server_alive, delay_s))


@dataclass(frozen=True, slots=True)
class _Attempt:
    end: AttemptEnd
    asked: Asked
    server_alive: bool
    delay_s: float

    def charge(self, reason: str, *, start_over: bool = False) -> Outcome:
        tries = self.asked.charged + 1
        if tries >= self.asked.max_attempts:
            return Fail(reason=f"given up after {plural(tries, 'attempt')}: {reason}")
        return PutBack(charged=True, reason=reason, delay_s=self.delay_s, start_over=start_over)

    def excuse(self, reason: str) -> PutBack:
        return PutBack(charged=False, reason=reason, delay_s=self.delay_s)


def _finished(attempt: _Attempt) -> Outcome:
    kind = finish_type(attempt.end.finish_reason)
    if kind in (Finish.STOP, Finish.LENGTH):
        return _answered(attempt, kind)
    if kind is Finish.ABORT:
        return _aborted(attempt)
    what = "the model produced no valid token (NaN)" if kind is Finish.NAN else "no normal end"
    # what such an answer is, nobody knows: nothing of it is continued
    return attempt.charge(
        f"{what}: finish reason {compact(attempt.end.finish_reason)}", start_over=True
    )


def _answered(attempt: _Attempt, kind: Finish) -> Outcome:
    end, asked = attempt.end, attempt.asked
    reported = end.reported_prompt_tokens
    if reported is not None and reported != asked.prompt_tokens:
        return attempt.charge(  # srv-14
            f"{PROMPTED_WITH} {reported} tokens, {asked.prompt_tokens} were sent",
            start_over=True,
        )
    answer = asked.held + end.ids
    state, flags = SampleState.OK if kind is Finish.STOP else SampleState.TRUNCATED, []
    if thinking_is_open(answer, _marks(asked)):
        flags.append(FLAG_THINKING)  # srv-20
    if kind is Finish.LENGTH and is_clipped(
        end.finish_reason, len(asked.held), len(end.ids), asked.max_new_tokens
    ):
        flags.append(FLAG_CLIPPED)
    if is_empty(answer, asked.end_token_ids):
        state = SampleState.EMPTY  # srv-11
    elif asked.detect_loops and _loops(answer, asked.end_token_ids):
        state = SampleState.SUSPECT  # srv-19
        flags.append(FLAG_LOOP)
    return Keep(
        state=state, finish_reason=compact(end.finish_reason, len(asked.held)), flags=tuple(flags)
    )


def _marks(asked: Asked) -> Marks:
    return Marks(
        opening=asked.think_open,
        closing=asked.think_close,
        opened_by_prompt=asked.thinking_opened_by_prompt,
    )


def _loops(answer: array[int], end_token_ids: frozenset[int]) -> bool:
    has_end = bool(answer) and answer[-1] in end_token_ids
    return loop_period(answer[:-1] if has_end else answer) is not None


def _aborted(attempt: _Attempt) -> Outcome:
    """Judge an abort that we did not ask for by its status, as an error (srv-04, srv-05)."""
    raw = attempt.end.finish_reason
    said = raw if isinstance(raw, dict) else {}
    status, message = said.get("status_code"), said.get("message")
    return _by_status(
        attempt,
        # 200 is the stream's status, not the request's
        status if isinstance(status, int) else attempt.end.status,
        f"aborted by the server: {_words(message or attempt.end.message)}",
    )


def _error(attempt: _Attempt) -> Outcome:
    status = attempt.end.status
    said = "the server reported an error" if status is None else f"the server answered {status}"
    return _by_status(attempt, status, f"{said}: {_words(attempt.end.message)}")


def _by_status(attempt: _Attempt, status: int | None, reason: str) -> Outcome:
    if status in BUSY_STATUSES:
        return _busy(attempt, reason)
    if status in FAIL_STATUSES:
        return Fail(reason=reason)  # srv-13
    if status in HALT_STATUSES:
        return Halt(reason=reason)
    return attempt.charge(reason)  # 408, 5xx and what nobody has thought of


def _busy(attempt: _Attempt, reason: str = "") -> PutBack:
    delay_s, asked_s = attempt.delay_s, attempt.end.retry_after_s
    if asked_s is not None and asked_s > 0:
        # the spread on top is jitter: the herd was told the same time. # srv-17
        delay_s = min(asked_s, LONGEST_RETRY_AFTER_S) + min(delay_s, 1.0)
    words = reason or f"the server is busy ({attempt.end.status}): {_words(attempt.end.message)}"
    return PutBack(charged=False, reason=words, delay_s=delay_s)


def _refused(attempt: _Attempt) -> PutBack:
    return attempt.excuse(f"no connection to the server: {_words(attempt.end.message)}")


def _cut(attempt: _Attempt) -> Outcome:
    end, asked = attempt.end, attempt.asked
    if attempt.server_alive:
        if end.ids:
            return attempt.excuse(f"the connection ended after {len(end.ids)} new tokens")
        return attempt.charge(f"the connection ended before any new token: {_words(end.message)}")
    if end.ids:
        # Whose request kills a server gets no further: what brought tokens is not suspected.
        return attempt.excuse("the server died while it made this answer")
    deaths = asked.server_deaths + 1
    if deaths >= POISON_DEATHS and asked.was_alone:
        return Fail(reason=f"the server died {deaths} times under this sample, last alone")
    return PutBack(
        charged=False,
        reason="the server died before it sent a token of this answer",
        delay_s=attempt.delay_s,
        server_died=True,
    )


def _timeout(attempt: _Attempt) -> Outcome:
    return attempt.charge(f"timeout: {_words(attempt.end.message)}")


def _withdrawn(attempt: _Attempt) -> PutBack:
    return PutBack(charged=False, reason=_words(attempt.end.message or "withdrawn"))


def _broken(attempt: _Attempt) -> Outcome:
    message = _words(attempt.end.message)
    return attempt.charge(f"the answer is not what the protocol says: {message}", start_over=True)


def _no_ids(attempt: _Attempt) -> Outcome:
    if attempt.asked.is_trial:
        return Halt(reason=_words(attempt.end.message))  # srv-10: every sample would fare the same
    return _broken(attempt)


_JUDGES: dict[EndKind, Callable[[_Attempt], Outcome]] = {
    EndKind.FINISHED: _finished,
    EndKind.ERROR: _error,
    EndKind.BUSY: _busy,
    EndKind.REFUSED: _refused,
    EndKind.CUT: _cut,
    EndKind.TIMEOUT: _timeout,
    EndKind.WITHDRAWN: _withdrawn,
    EndKind.BROKEN: _broken,
    EndKind.NO_IDS: _no_ids,
}


def _words(message: object) -> str:
    text = str(message or "").strip() or "no message"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"
