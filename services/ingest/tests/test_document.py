"""The API document of ingest: every verb that it serves, with the command of each."""

import json

import httpx

from fairlead_ingest.app import Ingest, build
from fairlead_ingest.settings import IngestSettings
from fairlead_schema.identity.verbs import VERBS
from fairlead_service.config.configuration import Config


async def test_the_document_names_every_verb_and_its_command() -> None:
    app = build(IngestSettings(Config()))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ingest") as client:
        answer = await client.get("/asyncapi.json")

    document = json.loads(answer.content)
    addresses = {channel["address"] for channel in document["channels"].values()}
    assert document["asyncapi"].startswith("3.")
    assert {
        "fairlead.api.{tenant}.session.create",
        "fairlead.api.{tenant}.session.prompt",
    } <= addresses
    assert {"CreateSession", "AdmitPrompt"} <= set(document["components"]["schemas"])


def test_the_nats_service_api_names_the_verbs_of_the_document() -> None:
    ingest = Ingest(IngestSettings(Config()))

    info = json.loads(ingest.server.api.answer("INFO"))

    assert info["name"] == "fairlead-ingest"
    commands = {
        endpoint["metadata"]["verb"]: json.loads(endpoint["metadata"]["request_schema"])["title"]
        for endpoint in info["endpoints"]
    }
    verbs = {verb: rule.scope for verb, rule in VERBS.items() if rule.service == "ingest"}
    own = {f"as.{verb}" for verb, scope in verbs.items() if scope is not None}
    every = {f"every.{verb}" for verb in verbs if VERBS[verb].repeatable}
    assert set(commands) == set(verbs) | own | every
    assert commands["session.create"] == "CreateSession"
    assert commands["session.prompt"] == "AdmitPrompt"
    assert commands["permission.reply"] == "ReplyPermission"
