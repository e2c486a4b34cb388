"""What callers may pass for a session, a model and a prompt, and its form on the wire."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypedDict

from pydantic import BaseModel
from pydantic_core import to_json

from fairlead_client.message_ids import mint_message_id
from fairlead_schema.catalog import ModelRef
from fairlead_schema.errors import InvalidRequest
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.prompt import FileInput
from fairlead_schema.session_info import SessionInfo

AnySession: TypeAlias = SessionId | SessionInfo
"""A session, or its id."""
AnyModel: TypeAlias = str | ModelRef
"""A model, or `provider/model`."""

_SESSION_ID: Final = re.compile(r"ses[A-Za-z0-9_-]{1,120}")


class PromptFields(TypedDict, total=False):
    """What holds for one prompt alone."""

    files: Sequence[FileInput | str]
    """Attachments, or their URIs."""
    system: str
    model: AnyModel
    agent: str
    tools: Sequence[str]
    """Names or patterns of the tools that the model may use; an empty list means none."""
    expand: bool
    synthetic: bool


def session_id_of(session: AnySession) -> SessionId:
    """The id of a session. Raises InvalidRequest for anything else, as the server does."""
    id_ = session.id if isinstance(session, SessionInfo) else session
    if _SESSION_ID.fullmatch(id_) is None:
        raise InvalidRequest("Invalid session ID", kind="Params", field="sessionID")
    return id_


def model_of(model: AnyModel) -> dict[str, Any]:
    """A model on the wire. Raises ValueError."""
    if isinstance(model, ModelRef):
        return model.wire()
    provider_id, slash, id_ = model.partition("/")
    if not (provider_id and slash and id_):
        raise ValueError(f"{model!r} names no model: write provider/model, for example sim/fast")
    return {"providerID": provider_id, "id": id_}


def admission_of(
    session: AnySession, prompt: dict[str, Any], id_: MessageId | None, **more: object
) -> dict[str, Any]:
    """The command that admits a prompt, under the id of the caller or a new one."""
    named = {"sessionID": session_id_of(session), "id": id_ or mint_message_id()}
    return {**named, "prompt": prompt, **more}


def body_of(command: object) -> bytes:
    """The JSON of a command. Raises InvalidRequest for what no JSON can carry, such as half a character."""
    try:
        return to_json(command)
    except ValueError as error:
        raise InvalidRequest(f"The command cannot be sent: {error}", kind="Body") from error


def prompt_of(
    text: str, fields: PromptFields, schema: type[BaseModel] | dict[str, Any] | None = None
) -> dict[str, Any]:
    """A prompt on the wire. Raises InvalidRequest for a text that no JSON can carry."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        reason = f"The text holds half a character at position {error.start}: decode it as UTF-8"
        raise InvalidRequest(reason, kind="Body", field="prompt.text") from error
    prompt: dict[str, Any] = {"text": text, **fields}
    if "files" in fields:
        prompt["files"] = [
            {"uri": file} if isinstance(file, str) else file.wire() for file in fields["files"]
        ]
    if "model" in fields:
        prompt["model"] = model_of(fields["model"])
    if "tools" in fields:
        prompt["tools"] = list(fields["tools"])
    if schema is not None:
        prompt["schema"] = schema if isinstance(schema, dict) else schema.model_json_schema()
    return prompt
