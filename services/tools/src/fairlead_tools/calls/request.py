"""Requests for calls: what a message of the work queue asks for, and what becomes of the message."""

from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeAlias

from pydantic import ValidationError

from fairlead_eventlog.ports import Job
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import CallSnapshot, ToolRequest

# A call that something else answers gets a new request with its answer. If that request is lost,
# an older one finds the answer after this time at most.
ANSWER_RECHECK_S: Final = 15.0
DEDUP_CALLS_MAX: Final = 10_000

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


class RequestDedup:
    """Knows the newest request for each call that something else answers.

    While such a call waits, sweeps and resting sub-agents bring more requests; without this they
    would add up. A newest request that did not come for two rechecks no longer counts: a server that
    lost it numbers later requests from a lower sequence on.
    """

    def __init__(self) -> None:
        self._newest: OrderedDict[RequestKey, tuple[int, float]] = OrderedDict()

    def is_duplicate(self, request: TakenRequest) -> bool:
        """Whether this worker has seen a newer request for the call. Notes the request if not."""
        newest, seen = self._newest.get(request.key, (0, 0.0))
        now = monotonic()
        if request.sequence < newest and now - seen < 2 * ANSWER_RECHECK_S:
            return True
        self._newest[request.key] = (request.sequence, now)
        self._newest.move_to_end(request.key)
        if len(self._newest) > DEDUP_CALLS_MAX:
            self._newest.popitem(last=False)
        return False
