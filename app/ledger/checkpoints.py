"""Checkpoints: the tokens of unfinished answers, as packed uint32, oldest first.

A row is one gain of one attempt; rows of a sample are contiguous from token 0. They go with the
settle that keeps the sample, or that starts it over.
"""

from __future__ import annotations  # array[int] cannot be evaluated before 3.12

from array import array
from collections.abc import Sequence

from sqlalchemy import Connection, text

from app.core.types import SampleId, Segment

_ADD = text(
    "INSERT INTO checkpoint (sample_id, from_token, attempt, rid, server, gen_id, ids)"
    " VALUES (:sample_id, :from_token, :attempt, :rid, :server, :gen_id, :ids)"
)
_DROP = text("DELETE FROM checkpoint WHERE sample_id = :sample_id")


def add(connection: Connection, gains: Sequence[dict[str, object]]) -> None:
    if gains:
        connection.execute(_ADD, gains)


def drop(connection: Connection, sample_ids: Sequence[SampleId]) -> None:
    if sample_ids:
        connection.execute(_DROP, [{"sample_id": sample_id} for sample_id in sample_ids])


def load(connection: Connection, sample_id: int) -> tuple[array[int], tuple[Segment, ...]]:
    """Return the held tokens in order, and which request made which."""
    pieces = connection.execute(
        text(
            "SELECT from_token, rid, server, gen_id, ids FROM checkpoint"
            " WHERE sample_id = :id ORDER BY from_token"
        ),
        {"id": sample_id},
    ).all()
    held: array[int] = array("I")
    segments: list[Segment] = []
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
    return held, tuple(segments)


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
