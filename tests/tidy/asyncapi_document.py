"""Writes docs/asyncapi.json from the code: feed, intake, receipts and verbs, as services on NATS meet them.

`make asyncapi` writes the file, and a test compares it with the code.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from pydantic.json_schema import models_json_schema

from fairlead_hooks.app import HooksService
from fairlead_hooks.settings import HooksSettings
from fairlead_ingest.app import Ingest
from fairlead_ingest.settings import IngestSettings
from fairlead_projector.feed.cloud_events import CONTENT_TYPE, SPECVERSION
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.errors import WireError
from fairlead_schema.events import MANIFEST, PermissionAsked, PromptPromoted, QuestionAsked
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.model import Model
from fairlead_schema.prompt import Receipt
from fairlead_schema.public_events import DurableRef
from fairlead_schema.session_values.event_names import client_type
from fairlead_schema.subjects import ROOT
from fairlead_service.config.configuration import Config
from fairlead_service.rpc.service_api import Endpoint
from fairlead_tools.app import ToolsService
from fairlead_tools.settings import ToolsSettings
from tests.tidy.json_schemas import Json, client_event_data, without_nulls

FILE: Final = Path(__file__).parents[2] / "docs/asyncapi.json"
REF: Final = "#/components/schemas/"
EVENTS: Final = tuple(event for event in MANIFEST if event.visibility != "private")
Messages: TypeAlias = dict[str, Json]

_ABOUT: Final = (
    "What services meet on NATS: the feed, the durable intake with its receipts, and the verbs. "
    "docs/guide/nats.md shows how to use them."
)
_PARAMETERS: Final = {
    "tenant": "The tenant of the session, such as default.",
    "session": "The id of the session.",
    "message": "The id of the message.",
    "sequence": "The sequence with which the server acknowledged the publication.",
    "principal": "The caller, as a token: local, key:<id>, service:<id>.",
    "type": "The type of the event in the log. It may hold dots.",
}


def document() -> Json:
    """The whole document."""
    endpoints = own_client_endpoints()
    schemas = model_schemas(endpoints)
    channels: dict[str, Json] = {}
    operations: dict[str, Json] = {}
    _describe_feed(channels, operations, schemas)
    _describe_intake(channels, operations, schemas)
    for endpoint in endpoints:
        _describe_verb(endpoint, channels, operations)
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Fairlead on NATS", "version": "0.1.0", "description": _ABOUT},
        "defaultContentType": CONTENT_TYPE,
        "servers": {"nats": {"host": "127.0.0.1:4222", "protocol": "nats"}},
        "channels": channels,
        "operations": operations,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def own_client_endpoints() -> list[Endpoint]:
    """The verbs that a tenant's own client may call, as ingest, tools and hooks serve them."""
    with TemporaryDirectory() as spool:
        tools = Config.model_validate({"tools": {"spool_dir": spool}})
        servers = (
            Ingest(IngestSettings(Config())).server,
            ToolsService(ToolsSettings(tools)).server,
            HooksService(HooksSettings(Config())).server,
        )
    endpoints = [endpoint for server in servers for endpoint in server.api.endpoints]
    return sorted(
        (endpoint for endpoint in endpoints if endpoint.verb.startswith("as.")),
        key=lambda endpoint: endpoint.verb,
    )


def model_schemas(endpoints: Iterable[Endpoint]) -> dict[str, Json]:
    """The schemas of all models. Fairlead neither sends nor takes null, so no schema allows it."""
    models: list[type[Model]] = [*EVENTS, AdmitPrompt, Receipt, WireError, DurableRef]
    models += [model for endpoint in endpoints for model in (endpoint.request, endpoint.response)]
    unique = [(model, "validation") for model in dict.fromkeys(models)]
    _names, generated = models_json_schema(unique, ref_template=f"{REF}{{model}}")  # type: ignore[arg-type]
    schemas: dict[str, Json] = without_nulls(generated["$defs"])
    return schemas


def _describe_feed(
    channels: dict[str, Json], operations: dict[str, Json], schemas: dict[str, Json]
) -> None:
    for event in EVENTS:
        schemas[event.__name__] = client_event_data(
            schemas[event.__name__],
            is_promotion=event is PromptPromoted,
            request=_request_schema(event, schemas),
        )
    messages = {event.type: _feed_message(event) for event in EVENTS}
    address = f"{ROOT}.event.{{tenant}}.{{session}}.{{type}}"
    channels["feed"] = _channel(
        address, messages, "The stream EVENTS: public events and notices of all sessions."
    )
    channels["feed"]["parameters"]["type"]["enum"] = [event.type for event in EVENTS]
    operations["publishFeed"] = _operation("send", "feed", messages)


def _request_schema(event: type[Any], schemas: dict[str, Json]) -> Json | None:
    if event not in {PermissionAsked, QuestionAsked}:
        return None
    reference: str = schemas[event.__name__]["properties"]["request"]["$ref"]
    return schemas[reference.removeprefix(REF)]


def _feed_message(event: type[Any]) -> Json:
    type_ = client_type(event.type, notice=event.visibility == "notice")
    headers = {
        "ce-specversion": {"type": "string", "const": SPECVERSION},
        "ce-id": {"type": "string"},
        "ce-source": {"type": "string", "format": "uri-reference"},
        "ce-type": {"type": "string", "const": type_},
        "ce-subject": {"type": "string"},
        "ce-time": {"type": "string", "format": "date-time"},
        "content-type": {"type": "string", "const": CONTENT_TYPE},
    }
    payload = {
        "type": "object",
        "required": ["id", "type", "data", "durable"],
        "properties": {
            "id": {"type": "string"},
            "type": {"type": "string", "const": type_},
            "data": {"$ref": f"{REF}{event.__name__}"},
            "durable": {"$ref": f"{REF}{DurableRef.__name__}"},
            "metadata": {"type": "object", "properties": {"by": {"type": "string"}}},
        },
    }
    return {
        "name": type_,
        "headers": {"type": "object", "properties": headers},
        "payload": payload,
    }


def _describe_intake(
    channels: dict[str, Json], operations: dict[str, Json], schemas: dict[str, Json]
) -> None:
    prompt = dict(schemas[AdmitPrompt.__name__], title="PublishedPrompt")
    prompt["properties"] = {k: v for k, v in prompt["properties"].items() if k != "sessionID"}
    prompt["required"] = [name for name in prompt["required"] if name != "sessionID"]
    schemas["PublishedPrompt"] = prompt
    published: Messages = {"prompt": {"payload": {"$ref": f"{REF}PublishedPrompt"}}}
    receipt: Messages = {"receipt": _data(Receipt), "refusal": _error()}
    refusal: Messages = {"refusal": _error()}
    prefix = f"{ROOT}.receipt.{{tenant}}.{{session}}.{{message}}"
    channels["intake"] = _channel(
        f"{ROOT}.prompt.{{tenant}}.{{session}}", published, "The durable intake of prompts."
    )
    channels["receipt"] = _channel(prefix, receipt, "The receipt, or the first refusal.")
    channels["refusal"] = _channel(f"{prefix}.{{sequence}}", refusal, "The refusal of one of them.")
    operations["admitPublishedPrompt"] = _operation("receive", "intake", published)
    operations["storeReceipt"] = _operation("send", "receipt", receipt)
    operations["storeRefusal"] = _operation("send", "refusal", refusal)


def _describe_verb(
    endpoint: Endpoint, channels: dict[str, Json], operations: dict[str, Json]
) -> None:
    verb = endpoint.verb.removeprefix("as.")
    request: Messages = {"request": {"payload": {"$ref": f"{REF}{endpoint.request.__name__}"}}}
    reply: Messages = {"data": _data(endpoint.response), "error": _error()}
    about = f"Needs the scope {VERBS[verb].scope}."
    channels[verb] = _channel(f"{ROOT}.as.{{tenant}}.{{principal}}.{verb}", request, about)
    channels[f"{verb}.reply"] = _channel(None, reply, "The inbox of the caller.")
    operations[verb] = _operation("receive", verb, request) | {
        "reply": {
            "channel": {"$ref": f"#/channels/{verb}.reply"},
            "messages": _references(f"{verb}.reply", reply),
        }
    }


def _data(model: type[Model]) -> Json:
    return {"payload": _wrapped("data", f"{REF}{model.__name__}")}


def _error() -> Json:
    return {"payload": _wrapped("error", f"{REF}{WireError.__name__}")}


def _wrapped(key: str, reference: str) -> Json:
    return {"type": "object", "required": [key], "properties": {key: {"$ref": reference}}}


def _channel(address: str | None, messages: Messages, about: str) -> Json:
    names = [name for name in _PARAMETERS if address and f"{{{name}}}" in address]
    parameters = {name: {"description": _PARAMETERS[name]} for name in names}
    channel: Json = {"address": address, "description": about, "messages": messages}
    return channel | ({"parameters": parameters} if parameters else {})


def _operation(action: str, channel: str, messages: Messages) -> Json:
    """`send` and `receive` are what Fairlead does: a service does the opposite."""
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": _references(channel, messages),
    }


def _references(channel: str, messages: Messages) -> list[Json]:
    return [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in messages]


def write() -> str:
    """The document as the file holds it."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(write())
    sys.stdout.write(f"{FILE.name}: {len(document()['channels'])} channels\n")
