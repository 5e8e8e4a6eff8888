"""The mark of a tokenizer: what differs is named, what cannot be compared is no difference."""

import pytest

from app.core.fingerprint import differences, fingerprint
from app.core.golden import STRINGS, first_difference, mark_of
from tests.core.test_fingerprint import FACTS, INPUTS, SPEC

IDS = [[1, place] for place in range(len(STRINGS))]
MARK = mark_of(IDS)


def test_the_strings_are_about_thirty_different_ones_and_all_can_be_sent() -> None:
    assert 30 <= len(STRINGS) <= 40
    assert len(set(STRINGS)) == len(STRINGS)
    assert all(text.encode() for text in STRINGS)


def test_the_first_string_with_other_ids_is_named() -> None:
    other = [*IDS[:7], [9], *IDS[8:-1], [9, 9]]
    old, new = (fingerprint(SPEC, FACTS, INPUTS, mark) for mark in (MARK, mark_of(other)))

    assert differences(old, new) == [
        f"tokenizer: golden strings differ: first {STRINGS[7]!r}",
    ]
    assert differences(old, old) == []


@pytest.mark.parametrize(
    "older",
    [
        None,
        {},
        {**MARK, "strings": "of another version"},
        {**MARK, "ids": ["a"]},
        {**MARK, "ids": 1},
    ],
    ids=["no_mark", "empty", "other_strings", "fewer_ids", "no_list"],
)
def test_marks_that_cannot_be_compared_are_no_difference(older: dict[str, object] | None) -> None:
    assert first_difference(older, MARK) is None
    assert first_difference(MARK, older) is None
    old, new = (fingerprint(SPEC, FACTS, INPUTS, mark) for mark in (older, MARK))
    assert differences(old, new) == differences(new, old) == []


def test_the_same_ids_in_another_process_are_the_same_mark() -> None:
    assert mark_of([list(each) for each in IDS]) == MARK
