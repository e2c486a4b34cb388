"""The OpenAPI document is well formed and says all there is to say."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from fairlead_gateway.http.openapi import document
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.routes import OPERATIONS
from fairlead_schema.errors import Unauthorized


@pytest.fixture(scope="module")
def api() -> dict[str, Any]:
    return document(OPERATIONS)


def _nodes(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _nodes(item)
    if isinstance(value, list):
        for item in value:
            yield from _nodes(item)


async def test_the_document_is_served(client: httpx.AsyncClient, api: dict[str, Any]) -> None:
    answer = await client.get("/openapi.json")

    assert answer.json() == api
    assert answer.json()["openapi"].startswith("3.1")
    assert set(answer.json()["info"]) >= {"title", "version"}


def test_every_operation_is_described_once(api: dict[str, Any]) -> None:
    methods = [item for path in api["paths"].values() for item in path.values()]
    ids = [item["operationId"] for item in methods]

    assert sorted(ids) == sorted(operation.id for operation in OPERATIONS)
    assert len(ids) == len(set(ids))
    assert all(path.startswith("/api/") for path in api["paths"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_operation_has_its_parameters_answer_and_errors(
    api: dict[str, Any],
    operation: Any,  # noqa: ANN401 - any operation
) -> None:
    item = api["paths"][operation.path][operation.method.lower()]

    named = {p["name"] for p in item["parameters"] if p["in"] == "path"}
    assert named == set(re.findall(r"{(\w+)}", operation.path))
    success = str(operation.status)
    assert {success, "400", "500"} <= set(item["responses"])
    assert {str(kind.status) for kind in operation.errors} <= set(item["responses"])
    bodiless = operation.answer is None and operation.media == "application/json"
    assert ("content" in item["responses"][success]) == (not bodiless)
    assert bodiless or operation.media in item["responses"][success]["content"]
    has_body = operation.body is not EmptyInput or operation.takes != "application/json"
    assert ("requestBody" in item) == has_body
    assert all("description" in r for r in item["responses"].values())
    empty = {success, "431"}
    assert all("content" in r for code, r in item["responses"].items() if code not in empty)


def test_a_session_route_may_always_miss_its_session() -> None:
    kinds = {o.id: {kind.tag for kind in o.errors} for o in OPERATIONS if o.in_session}

    assert all("SessionNotFoundError" in tags for tags in kinds.values())


def test_every_reference_leads_somewhere(api: dict[str, Any]) -> None:
    references = {node["$ref"] for node in _nodes(api) if isinstance(node.get("$ref"), str)}

    found = {f"#/components/schemas/{name}" for name in api["components"]["schemas"]}
    assert references
    assert references <= found


def test_every_schema_is_a_schema_and_nothing_may_be_null(api: dict[str, Any]) -> None:
    for schema in api["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)

    assert {"type": "null"} not in list(_nodes(api))


async def test_an_error_answer_fits_its_schema(
    client: httpx.AsyncClient, api: dict[str, Any]
) -> None:
    schema = api["components"]["schemas"]["SessionNotFoundError"]

    answer = await client.get("/api/session/ses_unknown")

    Draft202012Validator(schema).validate(answer.json())


def test_every_operation_shows_its_scope(api: dict[str, Any]) -> None:
    for operation in OPERATIONS:
        item = api["paths"][operation.path][operation.method.lower()]
        scopes = [] if operation.scope is None else [operation.scope]

        assert [next(iter(way.values())) for way in item["security"]] == [scopes] * 2 * len(scopes)
        may_refuse = operation.scope is not None or Unauthorized in operation.errors
        assert ("401" in item["responses"]) == may_refuse
        assert "403" in item["responses"]


def test_every_path_parameter_has_a_pattern(api: dict[str, Any]) -> None:
    parameters = [
        parameter
        for path in api["paths"].values()
        for item in path.values()
        for parameter in item["parameters"]
        if parameter["in"] == "path"
    ]

    assert parameters
    assert [p["name"] for p in parameters if not p["schema"].get("pattern")] == []


def test_numbers_of_a_query_have_their_bounds(api: dict[str, Any]) -> None:
    limits = [
        parameter["schema"]
        for path in api["paths"].values()
        for item in path.values()
        for parameter in item["parameters"]
        if parameter["name"] == "limit"
    ]

    assert limits
    assert all(schema["minimum"] == 1 and schema["maximum"] >= 100 for schema in limits)
