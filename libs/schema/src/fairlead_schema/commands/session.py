"""Commands that create, change or stop a session, and their answers."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model, NoNull
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.session_values.metadata import METADATA_KEYS_MAX, MetadataKey, MetadataValue
from fairlead_schema.tools.pool_rules import PoolName

AgentName = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class BudgetBody(InputModel):
    """How much a session may use in total. An absent limit means no limit."""

    cost: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    tokens: Annotated[int, Field(ge=0, lt=2**53)] | None = None


class CreateSession(InputModel):
    """`session.create`: create a session, or return the session that already has this id."""

    id: SessionId | None = None
    agent: AgentName | None = None
    model: Annotated[ModelRef, NoNull] | None = None
    location: Annotated[LocationRef, NoNull] | None = None
    parent_id: SessionId | None = None
    budget: Annotated[BudgetBody, NoNull] | None = None
    timezone: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    """The time zone of the dates that the model sees, such as `Europe/Oslo`."""


class SessionCommand(InputModel):
    """A command that names its session and nothing else."""

    session_id: SessionId


class AgentBody(InputModel):
    agent: AgentName


class SwitchAgent(AgentBody, SessionCommand):
    """`session.agent`: later turns use another agent."""


class ModelBody(InputModel):
    model: Annotated[ModelRef, NoNull]


class SwitchModel(ModelBody, SessionCommand):
    """`session.model`: later turns use another model."""


class MoveBody(InputModel):
    """Where to work from here on. With `moveChanges` uncommitted changes come along.

    Without a location only the pool changes. Without a pool the rules choose it for the location.
    """

    location: Annotated[LocationRef, NoNull] | None = None
    move_changes: Annotated[bool, NoNull] | None = None
    pool: Annotated[PoolName, NoNull] | None = None
    """The pool whose workers serve the session from here on."""
    at_rest: Annotated[bool, NoNull] | None = None
    """True: interrupt nothing, and refuse the move while something is open."""
    resume: Annotated[bool, NoNull] | None = None
    """True: work that the move interrupts goes on at the new place."""

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.location is None and self.pool is None:
            raise ValueError("name a location, a pool, or both")
        return self


class MoveSession(MoveBody, SessionCommand):
    """`session.move`: later turns work in another location."""


SessionTitle: TypeAlias = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$"
    ),
]


class DescribeBody(InputModel):
    """A title, and changes of the metadata: a null removes its key, and other keys stay."""

    title: SessionTitle | None = None
    metadata: (
        Annotated[dict[MetadataKey, MetadataValue | None], Field(max_length=METADATA_KEYS_MAX)]
        | None
    ) = None


class DescribeSession(DescribeBody, SessionCommand):
    """`session.describe`: name the session, and note metadata."""


class ForkBody(InputModel):
    """Where to fork: before this message, or at the end without one."""

    message_id: MessageId | None = None
    id: SessionId | None = None
    """The id of the new session."""


class ForkSession(ForkBody, SessionCommand):
    """`session.fork`: a new session that begins with a copy of this one."""


class SetBudget(BudgetBody, SessionCommand):
    """`session.budget`: limit what the session may use."""


class SeqReached(Model):
    """The last seq of a session after a command."""

    session_id: SessionId
    seq: int


class DescriptionReached(SeqReached):
    """The session after a change of its description."""

    session: SessionInfo


class MoveReached(SeqReached):
    """The sequence of the request that a runner has not served yet; None if there is none."""

    request: int | None = None


class InterruptReached(SeqReached):
    """An interrupt stops a drain, drops work that has not started, or does nothing."""

    outcome: Literal["stopping", "dropped", "idle"]
