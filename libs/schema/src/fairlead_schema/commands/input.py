"""Commands to the inbox: admit a prompt, and edit or cancel a pending input."""

from functools import cache
from typing import Annotated, Final, Self

from pydantic import StringConstraints, model_validator

from fairlead_schema.commands.prompt_keys import refuse_mistaken_keys
from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.ids import CallId, MessageId, SessionId
from fairlead_schema.message import AssistantMessage
from fairlead_schema.model import InputModel, Model
from fairlead_schema.prompt import Delivery, PromptInput, Receipt
from fairlead_schema.provider.structured_output import StepOutput

COMMAND_LENGTH_MAX: Final = 100_000


class PromptBody(InputModel):
    """The body of a prompt over HTTP."""

    id: MessageId | None = None
    prompt: PromptInput
    delivery: Delivery = "steer"
    resume: bool = True
    expected_turn: MessageId | None = None
    """A steer is admitted only while the model works on this assistant message."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_mistakes(cls, value: object) -> object:
        return refuse_mistaken_keys(value, _known_keys(cls), inside=False)


@cache
def _known_keys(body: type[Model]) -> frozenset[str]:
    """The keys of a body, by the names of its fields and as clients spell them."""
    names = (key for name, field in body.model_fields.items() for key in (name, field.alias))
    return frozenset(key for key in names if key)


class AdmitPrompt(PromptBody):
    """`session.prompt`: admit one prompt, durably, once."""

    session_id: SessionId
    minted_id: MessageId | None = None
    """The id that a service minted for this prompt, if its caller gave none, so that it can repeat."""


class ShellBody(InputModel):
    """A person's own command over HTTP."""

    id: MessageId | None = None
    command: Annotated[str, StringConstraints(min_length=1, max_length=COMMAND_LENGTH_MAX)]


class RequestShell(ShellBody):
    """`session.shell`: run a command of a person in the session's location, once."""

    session_id: SessionId
    minted_id: MessageId | None = None
    """As in `session.prompt`."""


class ShellReceipt(Model):
    """The answer to a person's command. An exact retry gets the same receipt."""

    admitted_seq: int
    id: MessageId
    session_id: SessionId
    call_id: CallId
    command: str
    time_created: int
    started_seq: int | None = None
    prompt_id: MessageId | None = None
    """The pending prompt whose template runs the command."""


class SkillBody(InputModel):
    """A skill that a person puts into a session, over HTTP."""

    id: MessageId | None = None
    skill: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    delivery: Delivery = "steer"
    resume: bool = True


class LoadSkill(SkillBody):
    """`session.skill`: put the instructions of a skill into a session, once."""

    session_id: SessionId
    minted_id: MessageId | None = None
    """As in `session.prompt`."""


class CancelInput(SessionCommand):
    """`session.cancel`: withdraw one pending input."""

    message_id: MessageId


class EditBody(InputModel):
    """The changes to a pending input. An absent key leaves its part unchanged."""

    prompt: PromptInput | None = None
    delivery: Delivery | None = None

    @model_validator(mode="after")
    def _require_a_change(self) -> Self:
        if self.prompt is None and self.delivery is None:
            raise ValueError("say a prompt, a delivery, or both")
        return self


class EditPendingInput(EditBody, CancelInput):
    """`session.edit`: change one pending input."""


class PromptResult(Model):
    """What became of a prompt: the assistant message that answers it, if one does."""

    id: MessageId
    promoted_seq: int | None = None
    cancelled: bool | None = None
    answer: AssistantMessage | None = None
    output: StepOutput | None = None
    """The structured output of the answer, if the prompt asked for one."""


class PendingInputs(Model):
    """The inputs that are admitted and not yet promoted, and the commands that have not started."""

    inputs: tuple[Receipt, ...]
    shells: tuple[ShellReceipt, ...] = ()
