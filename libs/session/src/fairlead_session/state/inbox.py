"""Pending input, and the record of every admission."""

from dataclasses import dataclass, field

from immutables import Map

from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_session.persistent import PersistentMap


@dataclass(frozen=True)
class PendingInput:
    """Input that was admitted and that the model has not seen."""

    admitted_seq: int
    message_id: MessageId
    prompt: Prompt
    delivery: Delivery
    created: int


@dataclass(frozen=True)
class AdmissionRecord:
    """The part of an admission that recognises an exact retry. The prompt itself is not kept."""

    admitted_seq: int
    fingerprint: str
    delivery: Delivery
    created: int
    promoted_seq: int | None = None
    cancelled: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether the input became visible without an admission. Nobody knows its delivery then."""
        return self.admitted_seq == self.promoted_seq


@dataclass(frozen=True)
class PendingShell:
    """A person's own command that waits for a safe boundary."""

    admitted_seq: int
    message_id: MessageId
    call_id: CallId
    command: str
    agent: str
    prompt_id: MessageId | None = None
    """The pending prompt that the command belongs to."""


@dataclass(frozen=True)
class Inbox:
    """Pending input, and a record of every admission of the session's life."""

    pending: tuple[PendingInput, ...] = ()
    shells: tuple[PendingShell, ...] = ()
    admissions: PersistentMap[MessageId, AdmissionRecord] = field(default_factory=Map)
