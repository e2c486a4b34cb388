"""docs/asyncapi.json says what the code does: it is generated, and real values fit its schemas."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fairlead_schema.errors import Conflict
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.prompt import Prompt, Receipt
from fairlead_schema.public_events import public_event_json
from fairlead_schema.record import Recorded, decode_event
from fairlead_service.rpc.answers import encode_data, encode_refusal
from tests.tidy.asyncapi_document import EVENTS, FILE, write

GOLDEN = Path(__file__).parents[2] / "libs/schema/tests/golden"
PUBLIC = {event.type for event in EVENTS}
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.name.split(".1")[0] in PUBLIC)


def read_document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(FILE.read_text())
    return document


DOCUMENT = read_document()


def complaints(channel: str, message: str, value: object) -> list[str]:
    schema = DOCUMENT["channels"][channel]["messages"][message]["payload"]
    whole = {**schema, "components": DOCUMENT["components"]}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def test_the_document_is_what_the_code_says() -> None:
    assert FILE.read_text() == write(), "run `make asyncapi`"


def test_the_document_names_every_verb_of_tenants_own_clients() -> None:
    verbs = {verb for verb, rule in VERBS.items() if rule.scope is not None}

    assert verbs <= set(DOCUMENT["channels"])
    assert verbs <= set(DOCUMENT["operations"])


@pytest.mark.parametrize("name", NAMES)
def test_every_event_fits_its_schema_as_clients_read_it(name: str) -> None:
    raw = json.loads((GOLDEN / name).read_text())
    recorded: Recorded = decode_event(raw)

    value = json.loads(json.dumps(public_event_json("ses_1", recorded)))

    assert complaints("feed", recorded.event.type, value) == []
    assert complaints("feed", recorded.event.type, {**value, "type": "another"}) != []
    assert complaints("feed", recorded.event.type, {**value, "data": {}}) != []


def test_a_receipt_and_a_refusal_fit_their_schemas() -> None:
    receipt = Receipt(
        admitted_seq=2,
        id="msg_1",
        session_id="ses_1",
        prompt=Prompt(text="hi"),
        delivery="steer",
        time_created=1,
    )
    refusal = json.loads(encode_refusal(Conflict("in use", "msg_1")))

    assert complaints("receipt", "receipt", json.loads(encode_data(receipt))) == []
    assert complaints("receipt", "refusal", refusal) == []
    assert complaints("receipt", "receipt", refusal) != []


@pytest.mark.parametrize(
    "body", [{"prompt": {"text": "hi"}}, {"id": "msg_1", "prompt": {"text": "a"}}]
)
def test_a_published_prompt_fits_its_schema(body: object) -> None:
    assert complaints("intake", "prompt", body) == []
    assert complaints("intake", "prompt", {"id": "msg_1"}) != []
