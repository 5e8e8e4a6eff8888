"""Builders of attempts for the tests of verdicts, and verdicts of the kind that a test expects."""

from __future__ import annotations  # array[int] cannot be written at run time before 3.12

from array import array
from typing import Any

from app.core.outcome import Asked, judge
from app.core.types import AttemptEnd, EndKind, Fail, Keep, Outcome, PutBack

END = 2
OPEN, CLOSE = 500, 501
STOP = {"type": "stop", "matched": END}


def ids(*tokens: int) -> array[int]:
    return array("I", tokens)


def asked(**changes: Any) -> Asked:
    values: dict[str, Any] = {
        "prompt_tokens": 10,
        "held": ids(),
        "max_new_tokens": 3,
        "charged": 0,
        "max_attempts": 3,
        "end_token_ids": frozenset({END}),
        "think_open": OPEN,
        "think_close": CLOSE,
    }
    return Asked(**(values | changes))


def finished(reason: object, tokens: array[int] | None = None, **more: Any) -> AttemptEnd:
    chosen = ids(87, 88, END) if tokens is None else tokens
    return AttemptEnd(kind=EndKind.FINISHED, ids=chosen, finish_reason=reason, **more)


def verdict(
    end: AttemptEnd, what: Asked | None = None, *, alive: bool = True, delay_s: float = 0.5
) -> Outcome:
    return judge(end, what or asked(), server_alive=alive, delay_s=delay_s)


def kept(end: AttemptEnd, what: Asked | None = None) -> Keep:
    outcome = verdict(end, what)
    assert isinstance(outcome, Keep)
    return outcome


def put_back(end: AttemptEnd, what: Asked | None = None, *, alive: bool = True) -> PutBack:
    outcome = verdict(end, what, alive=alive)
    assert isinstance(outcome, PutBack)
    return outcome


def failed(end: AttemptEnd, what: Asked | None = None, *, alive: bool = True) -> Fail:
    outcome = verdict(end, what, alive=alive)
    assert isinstance(outcome, Fail)
    return outcome
