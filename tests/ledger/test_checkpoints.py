"""Checkpoints: what is loaded is what was added, up to where it was cut."""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from app.core.types import SampleId, Segment
from app.ledger import checkpoints
from tests.ledger.hand import GEN, URL
from tests.ledger.scene import Scene

IDS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9)
# Which attempt made the piece, and its ids.
PIECES = st.lists(st.tuples(st.integers(1, 3), IDS), max_size=8).map(
    lambda pieces: sorted(pieces, key=lambda piece: piece[0])
)


@contextmanager
def undone(scene: Scene) -> Iterator[Connection]:
    """Open a write transaction whose effect is seen inside only."""
    with scene.ledger.write() as connection:
        savepoint = connection.begin_nested()
        yield connection
        savepoint.rollback()


@pytest.fixture
def sample_id(scene: Scene) -> SampleId:
    return scene.hand(scene.one(n=1)).one().sample_id


def add(connection: Connection, sample_id: int, pieces: Sequence[tuple[int, list[int]]]) -> None:
    at = 0
    for attempt, ids in pieces:
        row: dict[str, object] = {"sample_id": sample_id, "from_token": at, "attempt": attempt}
        row |= {"rid": f"rid-{attempt}", "server": URL, "gen_id": GEN}
        checkpoints.add(connection, [row | {"ids": array("I", ids).tobytes()}])
        at += len(ids)


def segments_of(pieces: Sequence[tuple[int, list[int]]], keep: int) -> tuple[Segment, ...]:
    begun: dict[int, int] = {}
    at = 0
    for attempt, ids in pieces:
        if at < keep:
            begun.setdefault(attempt, at)
        at += len(ids)
    return tuple(
        Segment(from_token=start, rid=f"rid-{attempt}", server=URL, gen_id=GEN)
        for attempt, start in begun.items()
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # each example is undone
@given(pieces=PIECES, share=st.floats(0, 1.2))
def test_what_is_cut_is_a_prefix_of_what_was_added(
    scene: Scene, sample_id: SampleId, pieces: list[tuple[int, list[int]]], share: float
) -> None:
    whole = [token for _, ids in pieces for token in ids]
    keep = min(len(whole), int(share * len(whole)))
    with undone(scene) as connection:
        add(connection, sample_id, pieces)
        before = checkpoints.load(connection, sample_id)
        checkpoints.cut(connection, sample_id, keep)
        after = checkpoints.load(connection, sample_id)
        (held,) = connection.exec_driver_sql("SELECT held_tokens FROM sample").one()

    assert (list(before.ids), before.segments) == (whole, segments_of(pieces, len(whole)))
    assert (list(after.ids), after.segments) == (whole[:keep], segments_of(pieces, keep))
    assert held == keep


def test_what_was_cut_can_be_gained_anew_at_the_same_place(
    scene: Scene, sample_id: SampleId
) -> None:
    with undone(scene) as connection:
        add(connection, sample_id, [(1, [1, 2, 3]), (1, [4, 5, 6])])
        checkpoints.cut(connection, sample_id, 4)
        row: dict[str, object] = {"sample_id": sample_id, "from_token": 4, "attempt": 2}
        row |= {"rid": "rid-2"}
        row |= {"server": URL, "gen_id": GEN, "ids": array("I", [9]).tobytes()}
        checkpoints.add(connection, [row])
        held = checkpoints.load(connection, sample_id)

    assert list(held.ids) == [1, 2, 3, 4, 9]
    assert [each.from_token for each in held.segments] == [0, 4]


def test_dropping_one_samples_checkpoints_leaves_the_others(scene: Scene) -> None:
    hand = scene.hand(scene.one(n=2))
    first, second = hand.claim(2)
    hand.gain(first, [1])
    hand.gain(second, [2])
    with scene.ledger.write() as connection:
        checkpoints.drop(connection, [first.sample_id])
        checkpoints.drop(connection, [])

        assert not checkpoints.load(connection, first.sample_id).ids
        assert list(checkpoints.load(connection, second.sample_id).ids) == [2]
