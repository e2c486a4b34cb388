"""The two versions of A2A on the wire: methods, params and results, each over the same types. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from a2a.compat.v0_3 import conversions, types
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from a2a.utils.errors import InvalidParamsError, VersionNotSupportedError
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message as ProtoMessage
from pydantic import BaseModel, ValidationError

Json: TypeAlias = dict[str, Any]

STREAMING: Final = frozenset({"SendStreamingMessage", "message/stream"})


class WireVersion(Protocol):
    """One version: how it is parsed and written."""

    def parse(self, method: str, body: Json) -> ProtoMessage:
        """The params of a request. Raises InvalidParamsError."""

    def send_result(self, task: Task) -> Json:
        """The result of a message that was sent."""

    def task(self, task: Task) -> Json:
        """A task as a result."""

    def update(self, update: StreamResponse) -> Json:
        """One update of a stream as a result."""


class Version1:
    """Version 1.0: the JSON form of the types."""

    METHODS: Final[Mapping[str, type[ProtoMessage]]] = {
        "SendMessage": SendMessageRequest,
        "SendStreamingMessage": SendMessageRequest,
        "GetTask": GetTaskRequest,
        "ListTasks": ListTasksRequest,
        "CancelTask": CancelTaskRequest,
        "SubscribeToTask": SubscribeToTaskRequest,
        "GetExtendedAgentCard": GetExtendedAgentCardRequest,
    }

    def parse(self, method: str, body: Json) -> ProtoMessage:
        kind = self.METHODS[method]
        try:
            parsed: ProtoMessage = ParseDict(
                body.get("params", {}), kind(), ignore_unknown_fields=True
            )
        except (ParseError, ValueError, TypeError, AttributeError) as error:
            raise InvalidParamsError(f"params: {error}") from error
        return parsed

    def send_result(self, task: Task) -> Json:
        return _json(SendMessageResponse(task=task))

    def task(self, task: Task) -> Json:
        return _json(task)

    def update(self, update: StreamResponse) -> Json:
        return _json(update)


class Version03:
    """Version 0.3, with the conversions of the protocol's own package."""

    METHODS: Final[Mapping[str, tuple[type[BaseModel], Callable[[Any], ProtoMessage]]]] = {
        "message/send": (types.SendMessageRequest, conversions.to_core_send_message_request),
        "message/stream": (
            types.SendStreamingMessageRequest,
            conversions.to_core_send_message_request,
        ),
        "tasks/get": (types.GetTaskRequest, conversions.to_core_get_task_request),
        "tasks/cancel": (types.CancelTaskRequest, conversions.to_core_cancel_task_request),
        "tasks/resubscribe": (
            types.TaskResubscriptionRequest,
            conversions.to_core_subscribe_to_task_request,
        ),
        "agent/getAuthenticatedExtendedCard": (
            types.GetAuthenticatedExtendedCardRequest,
            conversions.to_core_get_extended_agent_card_request,
        ),
    }

    def parse(self, method: str, body: Json) -> ProtoMessage:
        kind, convert = self.METHODS[method]
        try:
            return convert(kind.model_validate({"id": 0, **body}))
        except (ValidationError, ParseError, ValueError) as error:
            raise InvalidParamsError(f"params: {error}") from error

    def send_result(self, task: Task) -> Json:
        return self.task(task)

    def task(self, task: Task) -> Json:
        return _dump(conversions.to_compat_task(task))

    def update(self, update: StreamResponse) -> Json:
        return _dump(conversions.to_compat_stream_response(update, 0).result)


VERSION_1: Final = Version1()
VERSION_03: Final = Version03()


def version_of(method: str, header: str | None) -> WireVersion | None:
    """The version of a method; None for a method that neither has. Raises VersionNotSupportedError."""
    # The third number of a version counts for nobody. Without a version the method tells it.
    spoken = ".".join((header or "").strip().split(".")[:2])
    if spoken not in {"", "0.3", "1", "1.0"}:
        raise VersionNotSupportedError(f"Version {header} is not supported: use 1.0 or 0.3")
    if method in Version1.METHODS:
        return VERSION_1
    return VERSION_03 if method in Version03.METHODS else None


def page_json(page: ListTasksResponse) -> Json:
    """A page of tasks. Only version 1.0 has it. The last page says so with an empty token."""
    return {
        "tasks": [_json(task) for task in page.tasks],
        "nextPageToken": page.next_page_token,
        "pageSize": page.page_size,
        "totalSize": page.total_size,
    }


def card_json(card: AgentCard) -> Json:
    """A card that clients of both versions read: the fields of 0.3 stand beside those of 1.0."""
    return _dump(conversions.to_compat_agent_card(card)) | _json(card)


def _json(message: ProtoMessage) -> Json:
    found: Json = MessageToDict(message)
    return found


def _dump(model: BaseModel) -> Json:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
