"""Typed refusals with their wire tags: the same on HTTP and on NATS.

Refused
├── InvalidRequest        400  the request does not fit its contract: correct it
├── InvalidExport         400  the export or its events cannot be used: `kind` says why
├── InvalidCursor         400  the cursor is malformed or of another listing: start without it
├── Unauthorized          401  send credentials that are valid now
├── Forbidden             403  the principal lacks a scope: ask for it
├── SessionNotFound       404  create the session first
├── MessageNotFound       404  the session has no such message
├── PermissionNotFound    404  the permission request is not pending
├── QuestionNotFound      404  the question is not pending
├── OutputNotFound        404  the output does not exist, expired, or is another tenant's
├── FileMissing           404  the location has no such file or directory
├── AttachmentNotFound    404  the session has stored no such attachment
├── WebhookNotFound       404  the tenant has no such webhook
├── DeliveryNotFound      404  the delivery was not given up, or its event is gone
├── ScheduleNotFound      404  the tenant has no such schedule
├── ProviderNotFound      404  configure the provider in fairlead.toml
├── Conflict              409  the id is in use for something else: use a new id
├── RevertRefused         409  the files cannot change back: the message says why
├── MoveRefused           409  the changes cannot move along: the message says why
├── ChangesKept           409  the session has moved, and its changes also stay where it was
├── SessionIsStored       409  the session is in a file: restore it, as the message says
├── ReplayConflict        409  what is here stands against the import: `kind` says what
├── CursorExpired         410  the log was restored after the cursor: start again
├── PayloadTooLarge       413  send less, or send a reference
├── LimitReached          429  a limit is reached: wait as Retry-After says
├── InternalFailure       500  a defect of Fairlead; `ref` finds it in the logs
└── ServiceUnavailable    503  a dependency is down: try again
    └── SessionUnreadable      the log cannot be read from `seq` on: upgrade, or purge the session
"""

from typing import ClassVar, Self

from pydantic import Field

from fairlead_schema.ids import DeliveryId, MessageId, ScheduleId, SessionId, WebhookId
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
    seq: int | None = None


class UnreadablePlace(Model):
    """Where the log of a session cannot be read, and why. Answers show everything before it."""

    seq: int
    reason: str


class Refused(Exception):
    """The service understood a request and refused it, or could not serve it."""

    tag: ClassVar[str] = "UnknownError"
    status: ClassVar[int] = 500
    retry_after_s: float | None = None
    """How long the server asks to wait before the next try. Only clients set it."""

    def __init__(self, message: str, *, seq: int | None = None, **fields: str | None) -> None:
        super().__init__(message)
        self.body = WireError(tag=self.tag, message=_shorten(message), seq=seq, **fields)

    @classmethod
    def from_wire(cls, body: WireError) -> Self:
        """Rebuild a refusal from the answer of another service."""
        kind = _BY_TAG.get(body.tag, InternalFailure)
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

    def __init__(self, reason: str = "Authentication required") -> None:
        super().__init__(reason)


class Forbidden(Refused):
    tag, status = "ForbiddenError", 403


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


class FileMissing(Refused):
    tag, status = "FileNotFoundError", 404

    def __init__(self, path: str) -> None:
        super().__init__(f"File not found: {path}", resource=path)


class AttachmentNotFound(Refused):
    tag, status = "AttachmentNotFoundError", 404

    def __init__(self, attachment_id: str) -> None:
        super().__init__(f"Attachment not found: {attachment_id}", resource=attachment_id)


class WebhookNotFound(Refused):
    tag, status = "WebhookNotFoundError", 404

    def __init__(self, webhook_id: WebhookId) -> None:
        super().__init__(f"Webhook not found: {webhook_id}", resource=webhook_id)


class DeliveryNotFound(Refused):
    tag, status = "DeliveryNotFoundError", 404

    def __init__(self, delivery_id: DeliveryId, reason: str) -> None:
        super().__init__(f"{delivery_id} cannot be sent again: {reason}", resource=delivery_id)


class ScheduleNotFound(Refused):
    tag, status = "ScheduleNotFoundError", 404

    def __init__(self, schedule_id: ScheduleId) -> None:
        super().__init__(f"Schedule not found: {schedule_id}", resource=schedule_id)


class ProviderNotFound(Refused):
    tag, status = "ProviderNotFoundError", 404

    def __init__(self, provider_id: str) -> None:
        super().__init__(f"Provider not found: {provider_id}", provider_id=provider_id)


class Conflict(Refused):
    tag, status = "ConflictError", 409

    def __init__(self, reason: str, resource: str) -> None:
        super().__init__(f"{reason}: {resource}", resource=resource)


class RevertRefused(Refused):
    """A revert that changed nothing."""

    tag, status = "RevertRefusedError", 409

    def __init__(self, reason: str, session_id: SessionId) -> None:
        super().__init__(reason, session_id=session_id)


class MoveRefused(Refused):
    """A move with changes that moved nothing."""

    tag, status = "MoveRefusedError", 409

    def __init__(self, reason: str, session_id: SessionId) -> None:
        super().__init__(reason, session_id=session_id)


class ChangesKept(Refused):
    """A move that is done, whose changes could not be discarded where they came from."""

    tag, status = "ChangesKeptError", 409

    def __init__(self, reason: str, session_id: SessionId) -> None:
        text = f"The session has moved with its changes, but they also stay where it was: {reason}"
        super().__init__(text, session_id=session_id)


class SessionIsStored(Refused):
    """A session whose events are in a file (docs/operations/data.md). Only a restore or a purge helps."""

    tag, status = "SessionStoredError", 409

    def __init__(self, session_id: SessionId, file: str) -> None:
        super().__init__(
            f"The session is stored in the file {file}: run"
            f" `fairlead cold restore {session_id} --from DIR` with the directory of that file",
            session_id=session_id,
            resource=file,
        )


class InvalidExport(Refused):
    """An export that cannot be used. Nothing of it was written."""

    tag, status = "InvalidExportError", 400

    def __init__(
        self,
        kind: str,
        reason: str,
        *,
        session_id: SessionId | None = None,
        seq: int | None = None,
    ) -> None:
        super().__init__(reason, kind=kind, session_id=session_id, seq=seq)


class ReplayConflict(Refused):
    """An import that does not fit what is here. Nothing of the batch was written."""

    tag, status = "ReplayConflictError", 409

    def __init__(
        self,
        kind: str,
        reason: str,
        *,
        session_id: SessionId | None = None,
        seq: int | None = None,
    ) -> None:
        super().__init__(reason, kind=kind, session_id=session_id, seq=seq)


class CursorExpired(Refused):
    tag, status = "CursorExpiredError", 410


class PayloadTooLarge(Refused):
    tag, status = "TooLargeError", 413


class LimitReached(Refused):
    tag, status = "TooManyError", 429


class InternalFailure(Refused):
    tag, status = "UnknownError", 500


class ServiceUnavailable(Refused):
    tag, status = "ServiceUnavailableError", 503


class SessionUnreadable(ServiceUnavailable):
    """The log of a session cannot be read from event `seq` on. Everything before it can."""

    def __init__(self, seq: int, reason: str) -> None:
        super().__init__(
            f"The session cannot be read from event {seq} on: {reason}",
            service="session.log",
            kind="Unreadable",
            seq=seq,
        )
        self.place = UnreadablePlace(seq=seq, reason=_shorten(reason))


_BY_TAG: dict[str, type[Refused]] = {
    kind.tag: kind
    for kind in (
        InvalidRequest,
        InvalidCursor,
        Unauthorized,
        Forbidden,
        SessionNotFound,
        MessageNotFound,
        PermissionNotFound,
        QuestionNotFound,
        OutputNotFound,
        FileMissing,
        AttachmentNotFound,
        WebhookNotFound,
        DeliveryNotFound,
        ScheduleNotFound,
        ProviderNotFound,
        Conflict,
        RevertRefused,
        MoveRefused,
        ChangesKept,
        SessionIsStored,
        InvalidExport,
        ReplayConflict,
        CursorExpired,
        PayloadTooLarge,
        LimitReached,
        InternalFailure,
        ServiceUnavailable,
    )
}


def _shorten(message: str) -> str:
    excess = len(message) - MESSAGE_LENGTH_MAX
    return message if excess <= 0 else f"{message[:MESSAGE_LENGTH_MAX]}... ({excess} more chars)"
