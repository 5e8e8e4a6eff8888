"""What is said of a change of concurrency three minutes later, and what is not."""

from dataclasses import replace

import pytest

from app.core.effects import AFTER_S, Happening, Reading, effect, judged
from app.core.series import Piece
from app.core.types import PartitionId

P1, P2 = PartitionId(1), PartitionId(2)
ORDER = Happening(
    id=9, at_s=1_000.0, who="anna", event="concurrency", detail="B1: 96 -> 128", partition_id=P1
)
PIECES = [
    Piece(0.0, 1_000.0, 100.0),
    Piece(1_000.0, 1_030.0, 10.0),  # while it settles
    Piece(1_030.0, 1_400.0, 114.0),
]
NOW_S = ORDER.at_s + AFTER_S


def other(event: str, at_s: float, who: str = "anna", entry_id: int = 1) -> Happening:
    return replace(ORDER, id=entry_id, at_s=at_s, event=event, who=who, detail="B2: x -> y")


def test_a_change_is_judged_by_what_was_measured_on_both_sides() -> None:
    change = judged([ORDER], NOW_S)
    assert change is not None
    assert effect(change, PIECES, ()) == "B1: 96 → 128: +14 % tok/s"


def test_how_long_a_first_token_takes_is_said_where_the_server_tells() -> None:
    change = judged([ORDER], NOW_S)
    readings = [Reading(at_s=float(at), first_token_s=0.8) for at in range(900, 1_100, 10)]
    readings += [Reading(at_s=float(at), first_token_s=2.1) for at in range(1_150, 1_181, 10)]
    assert change is not None
    assert effect(change, PIECES, readings) == (
        "B1: 96 → 128: +14 % tok/s, first token 0.8 → 2.1 s"
    )
    assert effect(change, PIECES, readings[:-2]) == "B1: 96 → 128: +14 % tok/s"


def test_presses_one_after_the_other_are_one_change() -> None:
    first = replace(ORDER, id=8, at_s=990.0, detail="B1: 64 -> 96")
    change = judged([first, ORDER], NOW_S)
    assert change is not None
    assert (change.old, change.new, change.begin_s) == ("64", "128", 990.0)
    back = replace(ORDER, detail="B1: 96 -> 64")
    assert judged([first, back], NOW_S) is None  # taken back at once


@pytest.mark.parametrize(
    "happenings",
    [
        [other("concurrency", 900.0), ORDER],
        [replace(ORDER, id=8, at_s=960.0, partition_id=P2), ORDER],
        [other("state", 900.0), ORDER],
        [other("waiting for server", 950.0, "system"), ORDER],
        [ORDER, other("state", 1_100.0, entry_id=10)],
        [ORDER, other("server lost", 1_100.0, "system", 10)],
        [ORDER, other("effect", 1_180.0, "system", 10)],
        [replace(ORDER, who="system")],
        [replace(ORDER, detail="B1 something else")],
        [],
    ],
)
def test_what_cannot_be_told_apart_is_not_judged(happenings: list[Happening]) -> None:
    assert judged(happenings, NOW_S) is None


def test_it_is_judged_in_its_time_only() -> None:
    assert judged([ORDER], NOW_S - 1) is None
    assert judged([ORDER], NOW_S + 600) is None
    assert judged([other("state", 700.0), ORDER], NOW_S) is not None


@pytest.mark.parametrize("gap", [(840.0, 1_000.0), (1_060.0, 1_200.0)])
def test_a_side_that_was_hardly_measured_says_nothing(gap: tuple[float, float]) -> None:
    change = judged([ORDER], NOW_S)
    begin_s, end_s = gap
    known = [
        piece
        for each in PIECES
        for piece in (
            Piece(each.begin_s, min(each.end_s, begin_s), each.tokens_per_s),
            Piece(max(each.begin_s, end_s), each.end_s, each.tokens_per_s),
        )
        if piece.begin_s < piece.end_s
    ]
    assert change is not None
    assert effect(change, known, ()) is None
