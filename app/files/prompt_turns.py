"""Records with `"turns": "all"`: every user turn gets an answer, one after another.

Owns what such a record must be. Invariant: it holds nobody's answers, because each turn is asked
behind those that the run itself generates.
"""

from app.core.turns import MAX_TURNS, split_turns
from app.files.prompt_messages import RecordError, chat_of

ALL = "all"
Later = tuple[list[dict[str, object]], ...]


def first_turn(record: dict[str, object]) -> tuple[dict[str, object], Later]:
    """Return the record that asks the first turn alone, and what each later turn adds."""
    if record["turns"] != ALL:
        raise RecordError('turns is something else than "all"')
    messages = None if record.get("input_ids") is not None else chat_of(record)
    if messages is None:
        raise RecordError('turns = "all" needs messages or conversations')
    strange = [str(one["role"]) for one in messages if one["role"] not in ("system", "user")]
    if strange:
        raise RecordError(
            f"holds a turn of {'an' if strange[0] == 'assistant' else 'a'} {strange[0]}; with"
            ' turns = "all" every answer is generated, so leave all but system and user turns out'
        )
    first, later = split_turns(messages)
    if len(later) >= MAX_TURNS:
        raise RecordError(f"asks for {len(later) + 1:,} turns, at most {MAX_TURNS:,} are taken")
    rest = {
        name: value
        for name, value in record.items()
        if name not in ("turns", "messages", "conversations", "system", "text")
    }
    return {**rest, "messages": first}, later
