"""How states and finish reasons of samples are said. Pure."""

import json

from app.core.states import SampleState
from app.core.visible import visible_line

_LONGEST = 40
# look of the pill that each state has
STATE_LOOKS = {
    SampleState.PENDING: "wait",
    SampleState.RUNNING: "run",
    SampleState.OK: "done",
    SampleState.TRUNCATED: "idle",
    SampleState.EMPTY: "warn",
    SampleState.SUSPECT: "warn",
    SampleState.FAILED: "bad",
    SampleState.REJECTED: "bad",
}


def finish_word(finish_reason: str | None) -> str:
    """Return what a finish reason says in a word or two.

    >>> finish_word('{"type":"stop","matched":151645}'), finish_word("length"), finish_word(None)
    ('stop', 'length', '')
    >>> finish_word('{"type":"stop","matched":"END"}')
    'stop at "END"'
    """
    if not finish_reason:
        return ""
    try:
        said = json.loads(finish_reason) if finish_reason.startswith("{") else finish_reason
    except ValueError:
        said = finish_reason
    if not isinstance(said, dict):
        return visible_line(str(said))[:_LONGEST]
    word = visible_line(str(said.get("type", "")))[:_LONGEST]
    matched = said.get("matched")
    return f'{word} at "{visible_line(matched)[:_LONGEST]}"' if isinstance(matched, str) else word
