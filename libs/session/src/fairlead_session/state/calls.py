"""Local calls without a settlement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead_schema.ids import CallId, MessageId, WorkerId
from fairlead_schema.tools.content import RetryClass


@dataclass(frozen=True, slots=True)
class Grant:
    """An action that a person permitted one call."""

    action: str
    resources: tuple[str, ...]


@dataclass(frozen=True)
class UnsettledCall:
    """A local call without a settlement."""

    assistant_message_id: MessageId
    call_id: CallId
    tool: str
    input: Mapping[str, Any]
    agent: str
    retry: RetryClass
    revision: str | None
    called_seq: int
    worker: WorkerId | None = None
    starts: int = 0
    """How many workers have started the call, one after another, and did not give it back."""
    grants: tuple[Grant, ...] = ()
    deferred_until: int | None = None
    """The call is in a queue: another service settles it before this time, or it expires."""
    by_person: bool = False
    """A person's own command. Its message is no assistant message, and no step waits for it."""


def may_have_effect(call: UnsettledCall) -> bool:
    """Whether a worker has begun the call, and beginning it may have changed something."""
    return call.retry != "pure" and call.worker is not None
