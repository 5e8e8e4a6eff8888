"""The OpenAPI document is whole, and what the routes answer is what it says."""

from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from app.api import forecasting, report_form, schemas_measures, schemas_reading, schemas_samples
from app.core.loads import LoadSource, ServerLoad
from tests.api.conftest import Door
from tests.api.home import Home

ERRORS = ("401", "403", "404", "409", "422", "503")
ROUTES: list[tuple[str, type[BaseModel]]] = [
    ("/runs", schemas_reading.RunsAnswer),
    ("/runs/night", schemas_reading.RunAnswer),
    ("/runs/night/partitions", schemas_reading.PartitionsAnswer),
    ("/runs/night/activity", schemas_reading.ActivityAnswer),
    ("/runs/night/report", report_form.ReportAnswer),
    ("/runs/night/samples?partition=B1_chat", schemas_samples.SamplesAnswer),
    ("/runs/night/samples/1", schemas_samples.OneSampleAnswer),
    ("/runs/night/partitions/B1_chat/measures", schemas_measures.MeasuresAnswer),
    ("/runs/night/servers", schemas_reading.ServersAnswer),
    ("/runs/night/chart", schemas_reading.ChartAnswer),
    ("/servers", schemas_reading.ServersAnswer),
    ("/runs/night/forecast", forecasting.ForecastAnswer),
]


@pytest.fixture
async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    value: dict[str, Any] = (await client.get("/api/v1/openapi.json")).json()
    return value


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, verb, operation)
        for path, by_verb in document["paths"].items()
        for verb, operation in by_verb.items()
        if path.startswith("/api/v1")
    ]


async def test_every_operation_says_what_it_is_what_it_answers_and_how_it_refuses(
    document: dict[str, Any],
) -> None:
    found = operations(document)
    assert len(found) > 15
    for path, verb, operation in found:
        where = f"{verb} {path}"
        assert operation.get("summary"), where
        assert operation.get("description"), where
        good = next(code for code in operation["responses"] if code.startswith("2"))
        schema = operation["responses"][good]["content"]["application/json"]["schema"]
        assert schema.get("$ref", "").startswith("#/components/schemas/"), where
        for status in ERRORS:
            told = operation["responses"][status]["content"]["application/json"]["schema"]
            assert told["$ref"].endswith("/ErrorAnswer"), (where, status)


async def test_every_parameter_is_described_and_bounded(document: dict[str, Any]) -> None:
    n_numbers = 0
    for path, verb, operation in operations(document):
        for parameter in operation.get("parameters", []):
            where = f"{verb} {path} {parameter['name']}"
            assert parameter.get("description"), where
            schema = parameter["schema"]
            for kind in schema.get("anyOf", [schema]):
                if kind.get("type") in ("integer", "number"):
                    n_numbers += 1
                    assert {"minimum", "exclusiveMinimum"} & kind.keys(), where
                    assert {"maximum", "exclusiveMaximum"} & kind.keys(), where
                elif kind.get("type") == "string" and "enum" not in kind:
                    assert "maxLength" in kind, where
    assert n_numbers >= 6


async def test_answers_allow_no_key_that_the_document_does_not_name(
    document: dict[str, Any],
) -> None:
    answers = [
        schema
        for name, schema in document["components"]["schemas"].items()
        if name.endswith(("Answer", "Line", "Order"))
    ]
    assert len(answers) > 25
    assert all(schema.get("additionalProperties") is False for schema in answers)


@pytest.mark.parametrize(("path", "model"), ROUTES)
async def test_real_answers_are_what_the_document_says(
    client: httpx.AsyncClient, home: Home, door: Door, path: str, model: type[BaseModel]
) -> None:
    home.keep("B1_chat", 6, tokens=50)
    home.fail("B1_chat", 1)
    home.beat("B1_chat", in_flight=2, last_token_at=home.clock.now())
    door.known_loads[home.server_url] = ServerLoad(
        url=home.server_url, at=home.clock.now(), source=LoadSource.LOADS, first_token_p50_s=0.5
    )
    answer = await client.get(f"/api/v1{path}")
    assert answer.status_code == 200
    said = model.model_validate_json(answer.content, strict=True)
    assert set(said.model_dump(by_alias=True)) == set(answer.json())


async def test_every_get_route_is_held_against_its_model(document: dict[str, Any]) -> None:
    told = {path for path, verb, _ in operations(document) if verb == "get"}
    words = {"night": "{run}", "1": "{sample}", "B1_chat": "{partition}"}
    tried = {
        "/api/v1/"
        + "/".join(words.get(part, part) for part in path.partition("?")[0].strip("/").split("/"))
        for path, _ in ROUTES
    }
    assert tried == told
