"""Events of the inbox: admission, promotion and changes of pending input; shell commands."""

from typing import ClassVar, Final

from typing_extensions import override

from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.ids import CallId, MessageId
from fairlead_schema.prompt import Delivery, Prompt, needs_level


class PromptAdmitted(Event):
    type: ClassVar[str] = "prompt.admitted"
    message_id: MessageId
    prompt: Prompt
    delivery: Delivery
    resume: bool | None = None
    """False: admit the prompt and start no work. Absent means start work."""

    @property
    @override
    def needed_level(self) -> int:
        return max(self.level, needs_level(self.prompt))


class PromptPromoted(Event):
    """A pending input became history. `time` is its promotion, `created` its admission."""

    type: ClassVar[str] = "prompt.promoted"
    message_id: MessageId
    prompt: Prompt
    created: int

    @property
    @override
    def needed_level(self) -> int:
        return max(self.level, needs_level(self.prompt))


class InputCancelled(Event):
    type: ClassVar[str] = "input.cancelled"
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId


class InputEdited(Event):
    type: ClassVar[str] = "input.edited"
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId
    prompt: Prompt
    delivery: Delivery

    @property
    @override
    def needed_level(self) -> int:
        return max(self.level, needs_level(self.prompt))


class SyntheticAdded(Event):
    type: ClassVar[str] = "synthetic"
    message_id: MessageId
    text: str


SHELL_LEVEL: Final = 2
"""The level of the log's format in which people's commands run."""


class ShellRequested(Event):
    """A person's own command waits for a safe boundary. It runs after its start is in the log."""

    type: ClassVar[str] = "shell.requested"
    level: ClassVar[int] = SHELL_LEVEL
    visibility: ClassVar[Visibility] = "notice"
    message_id: MessageId
    call_id: CallId
    command: str
    agent: str
    """The agent whose rules judge the command."""
    prompt_id: MessageId | None = None
    """The pending prompt that the command belongs to: the command starts just before its promotion."""


class ShellStarted(Event):
    type: ClassVar[str] = "shell.started"
    message_id: MessageId
    call_id: CallId
    command: str
    agent: str | None = None
    """The agent whose rules judge the command. Without an agent no worker runs the command."""


class ShellEnded(Event):
    type: ClassVar[str] = "shell.ended"
    message_id: MessageId
    call_id: CallId
    output: str
    exit: int | None = None
    """The exit code. Absent if the command did not run to its end."""

    @property
    @override
    def needed_level(self) -> int:
        return self.level if self.exit is None else SHELL_LEVEL
