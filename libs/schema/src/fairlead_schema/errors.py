"""Typed refusals with their wire tags: the same on HTTP and on NATS.

Refused
├── InvalidRequest        400  the request does not fit its contract: mend it
├── InvalidCursor         400  the cursor is foreign or broken: start again without it
├── Unauthorized          401  say who you are
├── SessionNotFound       404  create it first
├── MessageNotFound       404  it is not in this session
├── PermissionNotFound    404  it is not pending
├── QuestionNotFound      404  it is not pending
├── OutputNotFound        404  it never was, it is another tenant's, or its time is over
├── ProviderNotFound      404  configure it in fairlead.toml
├── Conflict              409  the id is taken by something else: use a new one
├── CursorExpired         410  retention dropped what you ask for: start again
├── PayloadTooLarge              413  send less, or by reference
├── TooMany               429  a limit is reached: wait as Retry-After says
├── Unknown               500  our fault; `ref` finds it in the logs
└── ServiceUnavailable           503  a dependency is away: try again
"""

from typing import ClassVar, Self

from pydantic import Field

from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.model import Model

MESSAGE_LENGTH_MAX = 1024


class WireError(Model):
    """The body of a refusal."""

    tag: str = Field(alias="_tag")
    message: str
    kind: str | None = None
    field: str | None = None
    session_id: str | None = None
    message_id: str | None = None
    request_id: str | None = None
    provider_id: str | None = None
    resource: str | None = None
    ref: str | None = None
    service: str | None = None


class Refused(Exception):
    """A request that was understood and refused, or that could not be served."""

    tag: ClassVar[str] = "UnknownError"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **fields: str | None) -> None:
        super().__init__(message)
        self.body = WireError(tag=self.tag, message=_cut(message), **fields)

    @classmethod
    def from_wire(cls, body: WireError) -> Self:
        """Rebuild a refusal that another service answered."""
        kind = _BY_TAG.get(body.tag, Unknown)
        refused = kind.__new__(kind)
        Exception.__init__(refused, body.message)
        refused.body = body
        return refused  # type: ignore[return-value]


class InvalidRequest(Refused):
    tag, status = "InvalidRequestError", 400


class InvalidCursor(Refused):
    tag, status = "InvalidCursorError", 400

    def __init__(self, message: str = "Invalid cursor") -> None:
        super().__init__(message)


class Unauthorized(Refused):
    tag, status = "UnauthorizedError", 401

    def __init__(self) -> None:
        super().__init__("Authentication required")


class SessionNotFound(Refused):
    tag, status = "SessionNotFoundError", 404

    def __init__(self, session_id: SessionId) -> None:
        super().__init__(f"Session not found: {session_id}", session_id=session_id)


class MessageNotFound(Refused):
    tag, status = "MessageNotFoundError", 404

    def __init__(self, session_id: SessionId, message_id: MessageId) -> None:
        super().__init__(
            f"Message not found: {message_id}", session_id=session_id, message_id=message_id
        )


class PermissionNotFound(Refused):
    tag, status = "PermissionNotFoundError", 404

    def __init__(self, request_id: str) -> None:
        super().__init__(f"Permission request not found: {request_id}", request_id=request_id)


class QuestionNotFound(Refused):
    tag, status = "QuestionNotFoundError", 404

    def __init__(self, request_id: str) -> None:
        super().__init__(f"Question request not found: {request_id}", request_id=request_id)


class OutputNotFound(Refused):
    tag, status = "ToolOutputNotFoundError", 404

    def __init__(self, output_id: str) -> None:
        super().__init__(f"Tool output not found: {output_id}", resource=output_id)


class ProviderNotFound(Refused):
    tag, status = "ProviderNotFoundError", 404

    def __init__(self, provider_id: str) -> None:
        super().__init__(f"Provider not found: {provider_id}", provider_id=provider_id)


class Conflict(Refused):
    tag, status = "ConflictError", 409

    def __init__(self, reason: str, resource: str) -> None:
        super().__init__(f"{reason}: {resource}", resource=resource)


class CursorExpired(Refused):
    tag, status = "CursorExpiredError", 410


class PayloadTooLarge(Refused):
    tag, status = "TooLargeError", 413


class TooMany(Refused):
    tag, status = "TooManyError", 429


class Unknown(Refused):
    tag, status = "UnknownError", 500


class ServiceUnavailable(Refused):
    tag, status = "ServiceUnavailableError", 503


_BY_TAG: dict[str, type[Refused]] = {
    kind.tag: kind
    for kind in (
        InvalidRequest,
        InvalidCursor,
        Unauthorized,
        SessionNotFound,
        MessageNotFound,
        PermissionNotFound,
        QuestionNotFound,
        OutputNotFound,
        ProviderNotFound,
        Conflict,
        CursorExpired,
        PayloadTooLarge,
        TooMany,
        Unknown,
        ServiceUnavailable,
    )
}


def _cut(message: str) -> str:
    over = len(message) - MESSAGE_LENGTH_MAX
    return message if over <= 0 else f"{message[:MESSAGE_LENGTH_MAX]}... ({over} more chars)"
