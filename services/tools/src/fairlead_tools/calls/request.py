"""Requests for calls: what a message of the work queue asks for, and what becomes of the message."""

from dataclasses import dataclass
from typing import TypeAlias

from pydantic import ValidationError

from fairlead_eventlog.ports import Job
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import CallSnapshot, ToolRequest

RequestKey: TypeAlias = tuple[Address, MessageId, CallId]
"""The call that a request is for."""


class MalformedRequest(Exception):
    """A message that is no request. Another delivery does not change that."""


@dataclass(frozen=True, slots=True)
class TakenRequest:
    """A request for a call, as one delivery brought it to this worker."""

    at: Address
    assistant_message_id: MessageId
    call_id: CallId
    sequence: int
    """The place of the message in its queue, the same at every delivery."""
    deliveries: int = 1
    snapshot: CallSnapshot | None = None
    """What the sender knew of the call."""

    @property
    def key(self) -> RequestKey:
        return self.at, self.assistant_message_id, self.call_id


def parse_request(job: Job) -> TakenRequest:
    """The request in a message. Raises MalformedRequest."""
    try:
        request = ToolRequest.model_validate_json(job.payload)
    except ValidationError as error:
        raise MalformedRequest(error.errors()[0]["msg"]) from error
    _root, _kind, _pool, tenant, session_id = job.subject.split(".")
    if session_id != request.session_id:
        raise MalformedRequest(f"addressed to {session_id}, asks for {request.session_id}")
    return TakenRequest(
        Address(tenant, session_id),
        request.assistant_message_id,
        request.call_id,
        job.sequence,
        job.deliveries,
        request.snapshot,
    )


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The queue forgets the request."""


@dataclass(frozen=True, slots=True)
class PutBack:
    """Any worker gets the request again after the delay."""

    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LeaveInQueue:
    """Another worker runs the call, and acknowledges the request."""


@dataclass(frozen=True, slots=True)
class Handled:
    """How the work on a request ended, in a word for the metrics, and what becomes of the request."""

    end: str
    then: Acknowledge | PutBack | LeaveInQueue = Acknowledge()
