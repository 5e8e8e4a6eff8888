"""Conversations that are asked turn by turn: each turn is a sample of its own.

Owns which turns there are, what they are called, and when an earlier turn leaves none for the later
ones. Pure. Invariant: a later turn is asked only behind answers that ended by themselves.
"""

from collections.abc import Mapping, Sequence

from app.core.outcome import FLAG_THINKING
from app.core.states import SampleState

MAX_TURNS = 1_000
Message = dict[str, object]


def split_turns(messages: Sequence[Message]) -> tuple[list[Message], tuple[list[Message], ...]]:
    """Return what the first turn asks, and what each later one adds behind the answer before it.

    >>> first, later = split_turns([{"role": r} for r in ("system", "user", "system", "user")])
    >>> [[m["role"] for m in each] for each in (first, *later)]
    [['system', 'user'], ['system', 'user']]
    """
    turns: list[list[Message]] = [[]]
    for message in messages:
        if turns[-1] and turns[-1][-1]["role"] == "user":
            turns.append([])
        turns[-1].append(message)
    return turns[0], tuple(turns[1:])


def turn_key(key: str, turn: int) -> str:
    """Return the id of a turn's sample.

    >>> turn_key("x", 1), turn_key("x", 2)
    ('x', 'x#turn2')
    """
    return key if turn == 1 else f"{key}#turn{turn}"


def asked_with(
    first: Sequence[Message], later: Sequence[Sequence[Message]], answers: Sequence[Message]
) -> list[Message]:
    """Return the messages of the turn behind so many answers."""
    messages = list(first)
    for answer, turn in zip(answers, later, strict=False):
        messages += [answer, *turn]
    return messages


def why_not_asked(turn: int, state: SampleState, reason: str | None, flags: str) -> str | None:
    """Return why nothing is asked behind a turn that is over; None if its answer is whole.

    >>> why_not_asked(1, SampleState.TRUNCATED, None, "")
    'turn 1 was cut at its limit'
    >>> why_not_asked(2, SampleState.FAILED, "the server answered 400: no", "")
    'turn 2 failed: the server answered 400: no'
    >>> why_not_asked(1, SampleState.OK, None, FLAG_THINKING)
    'turn 1 never closed its reasoning'
    >>> why_not_asked(1, SampleState.OK, None, "")
    """
    said = reason or "no reason is known"
    if state is SampleState.OK and FLAG_THINKING in flags.split(","):
        return f"turn {turn} never closed its reasoning"
    why: Mapping[SampleState, str] = {
        SampleState.TRUNCATED: "was cut at its limit" + (f" ({flags})" if flags else ""),
        SampleState.EMPTY: "came back empty",
        SampleState.SUSPECT: "repeats itself to its end",
        SampleState.FAILED: f"failed: {said}",
        SampleState.REJECTED: f"was rejected: {said}",
    }
    return f"turn {turn} {why[state]}" if state in why else None
