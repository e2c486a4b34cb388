"""docs/asyncapi.json fits the published schema of AsyncAPI, which npm carries."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from fairlead_testing.node_packages import install_package

pytestmark = pytest.mark.integration

FILE = Path(__file__).parents[2] / "docs/asyncapi.json"


def test_the_document_fits_the_schema_of_asyncapi() -> None:
    folder = install_package("@asyncapi/specs", "6.11.1")
    document = json.loads(FILE.read_text())
    schema = (
        folder / f"node_modules/@asyncapi/specs/schemas/{document['asyncapi']}-without-$id.json"
    )
    validator = Draft7Validator(json.loads(schema.read_text()))

    assert [error.message for error in validator.iter_errors(document)] == []
    document["operations"]["publishFeed"]["action"] = "shout"
    assert list(validator.iter_errors(document)) != []
