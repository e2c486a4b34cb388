"""The question to a transform: the parts of a request that it may change, as JSON values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic_core import to_json

from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.request import ModelRequest
from fairlead_schema.subjects import Address
from fairlead_schema.transforms.registration import RequestPart
from fairlead_session.transforms.messages import message_json

Purpose: TypeAlias = Literal["turn", "compaction", "title"]


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """Which session makes a request, as which agent, to which model, and what for."""

    at: Address
    agent: str
    model: ModelRef
    purpose: Purpose
    headers: frozenset[str] = frozenset()
    """The names of all headers that the configuration sets, in lower case."""
    output_tokens_max: int | None = None


def build_document(
    request: ModelRequest, origin: RequestOrigin, parts: Iterable[RequestPart]
) -> bytes:
    """The document that a transform gets. It names headers, and never has their values."""
    document: dict[str, Any] = {
        "tenant": origin.at.tenant,
        "sessionID": origin.at.session_id,
        "agent": origin.agent,
        "model": origin.model.wire(),
        "purpose": origin.purpose,
    }
    document |= {part: _part(request, origin, part) for part in parts}
    return to_json(document)


def _part(request: ModelRequest, origin: RequestOrigin, part: RequestPart) -> object:
    match part:
        case "system":
            return request.system
        case "messages":
            return [message_json(turn) for turn in request.turns]
        case "parameters":
            controls = request.generation
            values = {
                "maxTokens": controls.max_tokens,
                "temperature": controls.temperature,
                "topP": controls.top_p,
                "stop": controls.stop or None,
            }
            known = {name: value for name, value in values.items() if value is not None}
            return known | {"options": request.options}
        case "headers":
            return sorted(origin.headers | {name.lower() for name in request.headers})
