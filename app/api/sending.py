"""How answers of GET routes leave: dicts as JSON, once, without a model in between.

A route names its model for OpenAPI as `response_model` and returns what `as_json` makes: FastAPI
sends a Response as it is. So the document is strict and the figures route costs no validation.
"""

from typing import Annotated, Any

import orjson
from fastapi import Path, Response
from pydantic import BeforeValidator, Field

from app.core.numbers import MAX_ROW_ID, may_be_row_id
from app.errors import NotFoundError

Json = dict[str, Any]


def _within_ids(word: object) -> object:
    if isinstance(word, str) and not may_be_row_id(word):
        raise NotFoundError("there is nothing of that number")
    return word


RowId = Annotated[int, Field(ge=0, le=MAX_ROW_ID), BeforeValidator(_within_ids)]
"""A row's number in an address; what no row can have is answered as any unknown one, 404."""
RunWord = Annotated[str, Path(description="Number or name of the run.", max_length=300)]
PartitionWord = Annotated[str, Path(description="Name or number of the partition.", max_length=100)]


def as_json(value: Json) -> Response:
    """Return the value as a JSON answer. Moments must be texts already, with their offset."""
    return Response(orjson.dumps(value), media_type="application/json")
