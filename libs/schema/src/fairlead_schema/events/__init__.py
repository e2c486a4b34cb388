"""The closed union of all events. A new event needs a class here and a golden JSON in the tests."""

from types import MappingProxyType
from typing import Final, TypeAlias, get_args

from fairlead_schema.events.asks import (
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    TodoUpdated,
)
from fairlead_schema.events.compaction import (
    CompactionEnded,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    CompactionUsed,
)
from fairlead_schema.events.context import (
    ContextInitialised,
    ContextPruned,
    ContextReplaced,
    ContextSnapshotAdvanced,
    ContextUpdated,
)
from fairlead_schema.events.event import Event, Visibility
from fairlead_schema.events.execution import (
    AttemptDispatched,
    AttemptFinished,
    AttemptOverflowed,
    CommandAnswered,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InterruptRequested,
    ResumeRequested,
)
from fairlead_schema.events.input import (
    InputCancelled,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    ShellEnded,
    ShellRequested,
    ShellStarted,
    SyntheticAdded,
)
from fairlead_schema.events.move import MoveBegun, MoveEnded, MoveFailed, MoveRequested
from fairlead_schema.events.revert import (
    RevertBegun,
    RevertCleared,
    RevertCommitted,
    RevertFailed,
    RevertRequested,
    RevertStaged,
)
from fairlead_schema.events.session import (
    AgentSwitched,
    BudgetSet,
    ChildFinished,
    ModelSwitched,
    SessionArchived,
    SessionCreated,
    SessionDescribed,
    SessionMoved,
    SessionPurged,
    SessionStored,
    SessionUnarchived,
    TitleEnded,
    TitleRequested,
)
from fairlead_schema.events.tools import (
    ToolCalled,
    ToolDeferred,
    ToolFailed,
    ToolInputEnded,
    ToolInputStarted,
    ToolProgressed,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.events.turn import (
    ReasoningEnded,
    ReasoningStarted,
    StepEnded,
    StepFailed,
    StepStarted,
    TextEnded,
    TextStarted,
    TurnRetried,
)

SessionEvent: TypeAlias = (
    SessionCreated
    | SessionArchived
    | SessionUnarchived
    | SessionDescribed
    | TitleRequested
    | TitleEnded
    | SessionPurged
    | SessionStored
    | BudgetSet
    | ChildFinished
    | AgentSwitched
    | ModelSwitched
    | SessionMoved
    | MoveRequested
    | MoveBegun
    | MoveFailed
    | MoveEnded
    | RevertRequested
    | RevertBegun
    | RevertFailed
    | RevertStaged
    | RevertCleared
    | RevertCommitted
    | PromptAdmitted
    | PromptPromoted
    | InputCancelled
    | InputEdited
    | SyntheticAdded
    | ShellRequested
    | ShellStarted
    | ShellEnded
    | ExecutionClaimed
    | ExecutionReleased
    | AttemptDispatched
    | AttemptFinished
    | AttemptOverflowed
    | InterruptRequested
    | ResumeRequested
    | CommandAnswered
    | ExecutionRecovered
    | StepStarted
    | StepEnded
    | StepFailed
    | TextStarted
    | TextEnded
    | ReasoningStarted
    | ReasoningEnded
    | TurnRetried
    | ToolInputStarted
    | ToolInputEnded
    | ToolCalled
    | ToolStarted
    | ToolDeferred
    | ToolProgressed
    | ToolSucceeded
    | ToolFailed
    | ContextInitialised
    | ContextReplaced
    | ContextPruned
    | ContextUpdated
    | ContextSnapshotAdvanced
    | CompactionRequested
    | CompactionStarted
    | CompactionEnded
    | CompactionFailed
    | CompactionUsed
    | PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | TodoUpdated
)

MANIFEST: Final[tuple[type[SessionEvent], ...]] = get_args(SessionEvent)
BY_TYPE: Final = MappingProxyType({(event.type, event.version): event for event in MANIFEST})

__all__ = [
    "BY_TYPE",
    "MANIFEST",
    "AgentSwitched",
    "AttemptDispatched",
    "AttemptFinished",
    "AttemptOverflowed",
    "BudgetSet",
    "ChildFinished",
    "CommandAnswered",
    "CompactionEnded",
    "CompactionFailed",
    "CompactionRequested",
    "CompactionStarted",
    "CompactionUsed",
    "ContextInitialised",
    "ContextPruned",
    "ContextReplaced",
    "ContextSnapshotAdvanced",
    "ContextUpdated",
    "Event",
    "ExecutionClaimed",
    "ExecutionRecovered",
    "ExecutionReleased",
    "InputCancelled",
    "InputEdited",
    "InterruptRequested",
    "ModelSwitched",
    "MoveBegun",
    "MoveEnded",
    "MoveFailed",
    "MoveRequested",
    "PermissionAsked",
    "PermissionReplied",
    "PromptAdmitted",
    "PromptPromoted",
    "QuestionAsked",
    "QuestionRejected",
    "QuestionReplied",
    "ReasoningEnded",
    "ReasoningStarted",
    "ResumeRequested",
    "RevertBegun",
    "RevertCleared",
    "RevertCommitted",
    "RevertFailed",
    "RevertRequested",
    "RevertStaged",
    "SessionArchived",
    "SessionCreated",
    "SessionDescribed",
    "SessionEvent",
    "SessionMoved",
    "SessionPurged",
    "SessionStored",
    "SessionUnarchived",
    "ShellEnded",
    "ShellRequested",
    "ShellStarted",
    "StepEnded",
    "StepFailed",
    "StepStarted",
    "SyntheticAdded",
    "TextEnded",
    "TextStarted",
    "TitleEnded",
    "TitleRequested",
    "TodoUpdated",
    "ToolCalled",
    "ToolDeferred",
    "ToolFailed",
    "ToolInputEnded",
    "ToolInputStarted",
    "ToolProgressed",
    "ToolStarted",
    "ToolSucceeded",
    "TurnRetried",
    "Visibility",
]
