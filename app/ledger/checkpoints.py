"""Checkpoints: the tokens of unfinished answers, as packed uint32, oldest first.

A row is one gain of one attempt; rows of a sample are contiguous from token 0. They go with the
settle that keeps the sample, or that starts it over.

Rows of attempt 0 (`LINE_ATTEMPT`) are copied from the sample's valid line, so that it can be
extended. Invariant: their tokens are counted once, as kept, for as long as that line is valid:
`sample.held_tokens` is the sum over all rows, the partition's counter that over the others.
Starting over leaves them; they go when the sample is settled.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.core.types import SampleId, Segment

_ADD = text(
    "INSERT INTO checkpoint (sample_id, from_token, attempt, rid, server, gen_id, ids)"
    " VALUES (:sample_id, :from_token, :attempt, :rid, :server, :gen_id, :ids)"
)
_DROP = text("DELETE FROM checkpoint WHERE sample_id = :sample_id")
_DROP_MADE = text("DELETE FROM checkpoint WHERE sample_id = :sample_id AND attempt <> 0")
LINE_ATTEMPT = 0  # attempts are counted from 1


@dataclass(frozen=True, slots=True)
class Held:
    """What checkpoints hold of a sample, which request made which, how many are the line's."""

    ids: array[int]
    segments: tuple[Segment, ...]
    line_tokens: int


def add(connection: Connection, gains: Sequence[dict[str, object]]) -> None:
    if gains:
        connection.execute(_ADD, gains)


def drop(connection: Connection, sample_ids: Sequence[SampleId]) -> None:
    if sample_ids:
        connection.execute(_DROP, [{"sample_id": sample_id} for sample_id in sample_ids])


def drop_made(connection: Connection, sample_ids: Sequence[SampleId]) -> None:
    """Drop what attempts have made, but not what is the valid line's own."""
    if sample_ids:
        connection.execute(_DROP_MADE, [{"sample_id": sample_id} for sample_id in sample_ids])


def load(connection: Connection, sample_id: int) -> Held:
    """Return the held tokens in order."""
    pieces = connection.execute(
        text(
            "SELECT from_token, attempt, rid, server, gen_id, ids FROM checkpoint"
            " WHERE sample_id = :id ORDER BY from_token"
        ),
        {"id": sample_id},
    ).all()
    held: array[int] = array("I")
    segments: list[Segment] = []
    line_tokens = 0
    for piece in pieces:
        if not segments or segments[-1].rid != piece.rid:
            segments.append(
                Segment(
                    from_token=piece.from_token,
                    rid=piece.rid,
                    server=piece.server,
                    gen_id=piece.gen_id,
                )
            )
        held.frombytes(piece.ids)
        if piece.attempt == LINE_ATTEMPT:
            line_tokens = len(held)
    return Held(held, tuple(segments), line_tokens)


def line_tokens_of(connection: Connection, sample_id: SampleId) -> int:
    """Return how many of a sample's held tokens are its valid line's own."""
    n: int = connection.execute(
        text(
            "SELECT coalesce(sum(length(ids)), 0) / 4 FROM checkpoint"
            " WHERE sample_id = :id AND attempt = 0"
        ),
        {"id": sample_id},
    ).scalar_one()
    return n


def disown_line(connection: Connection, sample_id: SampleId) -> None:
    """Say that the line is gone: what was copied from it is held like any other token."""
    connection.execute(
        text("UPDATE checkpoint SET attempt = 1 WHERE sample_id = :id AND attempt = 0"),
        {"id": sample_id},
    )


def cut(connection: Connection, sample_id: int, keep_tokens: int) -> None:
    """Drop what stands behind the first `keep_tokens` tokens of a sample, and its held count."""
    pieces = connection.execute(
        text(
            "SELECT from_token, ids FROM checkpoint WHERE sample_id = :id"
            " AND from_token + length(ids) / 4 > :keep ORDER BY from_token"
        ),
        {"id": sample_id, "keep": keep_tokens},
    ).all()
    for piece in pieces:
        left_bytes = max(0, keep_tokens - piece.from_token) * 4
        connection.execute(
            text(
                "DELETE FROM checkpoint WHERE sample_id = :id AND from_token = :at"
                if left_bytes == 0
                else "UPDATE checkpoint SET ids = :ids WHERE sample_id = :id AND from_token = :at"
            ),
            {"id": sample_id, "at": piece.from_token}
            | ({"ids": piece.ids[:left_bytes]} if left_bytes else {}),
        )
    connection.execute(
        text("UPDATE sample SET held_tokens = :keep WHERE id = :id"),
        {"keep": keep_tokens, "id": sample_id},
    )
