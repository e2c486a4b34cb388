"""Who drains a session, what somebody asked for, and why it rests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_schema.events.execution import RestReason
from fairlead_schema.ids import CallId, MessageId, PermissionId, RunnerId


@dataclass(frozen=True, slots=True)
class Owner:
    """The runner that drains the session now."""

    runner: RunnerId
    generation: int


@dataclass(frozen=True)
class Interrupt:
    """A request to stop that a runner has not honoured yet."""

    declined: str | None = None
    """The call that a person declined, if a decline caused the interrupt."""
    resumed: bool = False
    """Somebody asked for another turn meanwhile. The turn follows the stop."""


@dataclass(frozen=True, slots=True)
class RestState:
    """Why the session rests, and when a timer ends the rest."""

    reason: RestReason
    detail: str | None = None
    wake_at: int | None = None


@dataclass(frozen=True)
class OpenAttempt:
    """A provider request without an outcome in the log, as far as execution is concerned."""

    seq: int
    overflowed: bool = False


@dataclass(frozen=True, slots=True)
class CallKey:
    """The identity of a call: its assistant message and its id there."""

    assistant_message_id: MessageId
    call_id: CallId


@dataclass(frozen=True)
class Execution:
    """Who drains the session, what somebody asked for, and why it rests.

    `owed`: the model owes an answer. `work_requested`: somebody asked for work since the session
    last rested; without it a session at rest stays at rest. `failure`: how the last request
    failed, while nobody has asked for anything since the request left.
    """

    generation: int = 0
    owner: Owner | None = None
    owed: bool = False
    work_requested: bool = False
    work_requested_seq: int = 0
    compaction_requested: bool = False
    revert_requested: bool = False
    move_requested: bool = False
    interrupt: Interrupt | None = None
    rest: RestState | None = None
    attempt: OpenAttempt | None = None
    open_calls: tuple[CallKey, ...] = ()
    call_asks: Mapping[PermissionId, CallKey] = field(default_factory=dict)
    """Pending permissions that calls wait for."""
    shell_requested: bool = False
    """A person's own command asked for a runner. Like a compaction, it asks for no other work."""
    open_shells: tuple[CallKey, ...] = ()
    """Commands of people that run, or that wait for no prompt."""
    answered_message_id: MessageId | None = None
    """The assistant message whose local call was settled last: its step continues."""
    recoveries: int = 0
    held: bool = False
    failure: str | None = None
    imported_through: int | None = None
    """The last seq of the import that wrote the session, until somebody here asks for something.

    What was asked for at the session's origin begins nothing here.
    """

    @property
    def interrupted(self) -> bool:
        return self.interrupt is not None

    @property
    def declined(self) -> str | None:
        return None if self.interrupt is None else self.interrupt.declined

    @property
    def rested(self) -> RestReason | None:
        return None if self.rest is None else self.rest.reason

    @property
    def rest_detail(self) -> str | None:
        return None if self.rest is None else self.rest.detail

    @property
    def wake_at(self) -> int | None:
        return None if self.rest is None else self.rest.wake_at
