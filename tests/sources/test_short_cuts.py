"""What is read by a short cut, for speed, is what the rules say."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from app.sources.contract import Mode, SkippedError
from app.sources.conversations import Extracted, extracted
from app.sources.known import by_name
from tests.sources.any_rows import any_text, good_turn

CHAT = by_name("chat_messages")
BLANK = {"role": "user", "content": " \u3000\n"}


@given(seed=st.integers(0, 2**64), mode=st.sampled_from(Mode))
@settings(max_examples=150, deadline=None)
def test_a_blank_turn_and_a_key_that_nobody_reads_change_nothing(seed: int, mode: Mode) -> None:
    random = Random(seed)
    for turns in (alternating(random), [good_turn(random) for _ in range(random.randrange(6))]):
        place = random.randrange(len(turns) + 1)
        with_blank = [*turns[:place], BLANK, *turns[place:]]
        with_key = [{**turn, "weight": None} for turn in turns]

        found = asked_or_why(turns, mode)

        assert asked_or_why(with_key, mode) == found
        # Without a user turn the blank one is the only one, and that is said.
        if isinstance(found, Extracted):
            assert asked_or_why(with_blank, mode) == found


def alternating(random: Random) -> list[dict[str, object]]:
    """Return turns as nearly every row has them."""
    names = ["user", "assistant"] * random.randrange(1, 4)
    opening = ["system"] if random.random() < 0.5 else []
    texts = ["Hi", "é", "a [EOS]", any_text(random)]
    return [{"role": name, "content": random.choice(texts)} for name in [*opening, *names]]


def asked_or_why(turns: object, mode: Mode) -> object:
    try:
        return extracted(CHAT, {"messages": turns}, mode)
    except SkippedError as skipped:
        return skipped.reason
