"""Commands to a session that exists: what each verb takes, and what it gives."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from fairlead_schema.api import AgentName, BudgetBody
from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.location import LocationRef
from fairlead_schema.model import InputModel, Model, NoNull
from fairlead_schema.prompt import Delivery, PromptInput, Receipt


class SessionCommand(InputModel):
    """A command that says no more than which session."""

    session_id: SessionId


class CancelInput(SessionCommand):
    """`session.cancel`: withdraw one pending input."""

    message_id: MessageId


class EditBody(InputModel):
    """What to change of a pending input; an absent key stays as it is."""

    prompt: PromptInput | None = None
    delivery: Delivery | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.prompt is None and self.delivery is None:
            raise ValueError("say a prompt, a delivery, or both")
        return self


class EditPendingInput(EditBody, CancelInput):
    """`session.edit`: change one pending input."""


class AgentBody(InputModel):
    agent: AgentName


class SwitchAgent(AgentBody, SessionCommand):
    """`session.agent`: later turns speak as another agent."""


class ModelBody(InputModel):
    model: Annotated[ModelRef, NoNull]


class SwitchModel(ModelBody, SessionCommand):
    """`session.model`: later turns use another model."""


class MoveBody(InputModel):
    location: Annotated[LocationRef, NoNull]


class MoveSession(MoveBody, SessionCommand):
    """`session.move`: work elsewhere from here on."""


class SetBudget(BudgetBody, SessionCommand):
    """`session.budget`: limit what the session may use."""


class ExecutionReached(Model):
    """How far a session has come, once a command is done."""

    session_id: SessionId
    seq: int


class InterruptReached(ExecutionReached):
    """What an interrupt met: a drain that stops, work that had not begun, or nothing to stop."""

    outcome: Literal["stopping", "dropped", "idle"]


class PendingInputs(Model):
    """What was admitted and not yet promoted, in its order."""

    inputs: tuple[Receipt, ...]
