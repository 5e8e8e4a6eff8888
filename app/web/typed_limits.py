"""How budgets and goals are typed: the text of a field to a number, None for "none".

InputError names field and value, and says what to write.
"""

from app.core.deadlines import NONE, REMEDY
from app.core.spec import parse_tokens
from app.core.spec_parse import MAX_SAMPLES
from app.errors import InputError

MAX_TYPED = 60  # as in the API's order of a deadline
REMEDIES = {
    "budget": 'write for example 12M, 750k, +2M for so much more, or "none"',
    "goal": 'write how many answers are wanted, for example 7000, +500 for so many more, or "none"',
    "deadline": f'{REMEDY}, or "none"',
}


def typed_limit(kind: str, typed: str | None) -> str | None:
    """Return what was typed for a limit of this kind, None for "none"."""
    if not typed:
        raise InputError(f"no {kind} is given", hint=REMEDIES[kind])
    if len(typed) > MAX_TYPED:
        raise InputError(
            f'{kind} "{typed[:20]}…" is too long: {len(typed):,} letters', hint=REMEDIES[kind]
        )
    return None if typed.lower() == NONE else typed


def in_full(kind: str, typed: str | None, present: int | None) -> str | None:
    """Return what "+2M" comes to: so much more than the budget or goal is now; others as typed."""
    if typed is None or kind == "deadline" or not typed.startswith("+"):
        return typed
    if present is None:
        raise InputError(
            f'{kind} "{typed}" has nothing to be added to: there is no {kind} now',
            hint=REMEDIES[kind],
        )
    if not typed[1:].strip():
        raise InputError(f'{kind} "+" does not say how much more', hint=REMEDIES[kind])
    more = (typed_tokens_budget if kind == "budget" else typed_goal)(typed[1:])
    return str(present + (more or 0))


def typed_tokens_budget(typed: str | None) -> int | None:
    """Return a budget in tokens."""
    try:
        return None if typed is None else parse_tokens(typed)
    except ValueError as error:
        raise InputError(f'budget {error}, or "none"') from error


def typed_goal(typed: str | None) -> int | None:
    """Return a goal in samples."""
    digits = (typed or "").replace(",", "").replace("_", "")
    if typed is not None and not (digits.isascii() and digits.isdigit()):
        raise InputError(f'goal "{typed}" is not a whole number', hint=REMEDIES["goal"])
    samples = None if typed is None else int(digits)
    if samples is not None and not 1 <= samples <= MAX_SAMPLES:
        raise InputError(
            f'goal "{typed}" is not a whole number from 1 to {MAX_SAMPLES:,}',
            hint=REMEDIES["goal"],
        )
    return samples
