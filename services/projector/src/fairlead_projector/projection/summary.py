"""How a session's row follows its events. Pure.

`owed` is a hint for the sweep: a turn is due and somebody should be at it. It becomes true when
input is promoted, a turn is asked for or dispatched, a person permitted a call, or the last local
call of a message settles. It becomes false when a step ends without local calls, or the owner rests for
a reason of its own. Over its budget a turn stays owed, so that a raised limit finds it. Wrongly
true costs a wake now and then; wrongly false strands a session.

`stirring` says that somebody asked for work since the session last rested. Input that was only
admitted, or left pending by a failure or an interrupt, waits in peace until somebody asks.
"""

from typing import Final

from fairlead_projector.projection.rows import Projected, SessionRow
from fairlead_schema.events import (
    AgentSwitched,
    AttemptDispatched,
    BudgetSet,
    CompactionRequested,
    CompactionUsed,
    ExecutionClaimed,
    ExecutionRecovered,
    ExecutionReleased,
    InterruptRequested,
    ModelSwitched,
    PermissionReplied,
    PromptPromoted,
    ResumeRequested,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    SessionMoved,
    StepEnded,
    StepFailed,
    ToolFailed,
    ToolSucceeded,
    TurnRetried,
)
from fairlead_schema.message import Message, ToolBlock
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.execution import STILL_STIRRING, STOPPED
from fairlead_session.fold.turn import PAUSE

UNREADABLE: Final = "(unreadable)"

_OWING: Final = (
    PromptPromoted,
    ResumeRequested,
    AttemptDispatched,
    TurnRetried,
    ExecutionRecovered,
    CompactionRequested,
    PermissionReplied,
)
_SPENDING: Final = (StepEnded, CompactionUsed)
_STEPS: Final = (StepEnded, StepFailed)
_SETTLEMENTS: Final = (ToolSucceeded, ToolFailed)
_OTHERS: Final = (ExecutionClaimed, ExecutionReleased, InterruptRequested, BudgetSet)
_EXECUTION: Final = (*_OWING, *_STEPS, *_SETTLEMENTS, *_OTHERS)
_STILL_OWED: Final = frozenset(
    {"handover", "context-unavailable", "over-budget", "budget-unknown", "parked", "retry-later"}
)
_IDENTITY: Final = (
    AgentSwitched,
    ModelSwitched,
    SessionMoved,
    SessionArchived,
    RevertStaged,
    RevertCleared,
    RevertCommitted,
)
_CHANGING: Final = frozenset((*_EXECUTION, *_SPENDING, *_IDENTITY))


def begun(at: Address, recorded: Recorded, position: int) -> SessionRow | None:
    """The row of a new session just before its first event, if this event creates one."""
    event = recorded.event
    if not isinstance(event, SessionCreated):
        return None
    return SessionRow(
        tenant=at.tenant,
        session_id=at.session_id,
        seq=recorded.seq - 1,
        position=position,
        parent_id=event.parent_id,
        project_id=event.project_id,
        title=event.title,
        directory=event.location.directory,
        workspace_id=event.location.workspace_id,
        subpath=event.subpath,
        agent=event.agent,
        model=event.model,
        created_at=recorded.time,
        updated_at=recorded.time,
    )


def stillborn(at: Address, position: int) -> SessionRow:
    """The row of a session whose first commit cannot be read: it only carries the reason."""
    return SessionRow(
        tenant=at.tenant,
        session_id=at.session_id,
        seq=1,
        position=position,
        project_id="",
        title=UNREADABLE,
        directory="",
        created_at=0,
        updated_at=0,
    )


def follow(session: Projected, recorded: Recorded) -> None:
    """Apply one event to the row, after the session's messages took it in."""
    event = recorded.event
    if type(event) not in _CHANGING:
        return
    if isinstance(event, _EXECUTION):
        _execute(session, event)
    elif not isinstance(event, _SPENDING):
        _change(session.row, event, recorded.time)
    if isinstance(event, _SPENDING):
        row = session.row
        row.cost += event.cost
        row.tokens = row.tokens.plus(event.tokens)
        row.updated_at = recorded.time


def _execute(session: Projected, event: SessionEvent) -> None:
    row = session.row
    match event:
        case StepEnded() | StepFailed():
            calls = _local_calls(session.find(event.assistant_message_id))
            row.owed = bool(calls) or (isinstance(event, StepEnded) and event.finish == PAUSE)
        case ToolSucceeded() | ToolFailed():
            calls = _local_calls(session.find(event.assistant_message_id))
            # Nothing is owed any more: an interrupt settles them.
            due = row.owed and bool(calls) and all(map(_settled, calls))
            row.stirring = row.stirring or due
        case ExecutionClaimed():
            row.stirring = row.stirring or row.rested == "over-budget"
            row.owner, row.wake_at, row.rested = event.runner, None, None
        case InterruptRequested():
            _interrupt(session, event)
        case BudgetSet():
            row.stirring = row.stirring or row.rested == "over-budget"
            row.budget_cost, row.budget_tokens = event.cost, event.tokens
        case ResumeRequested(forced=forced):
            row.owed = row.owed or forced is not False
            row.stirring, row.rested, row.wake_at = True, None, None
        case PermissionReplied(reply="reject"):
            pass  # What follows from a refusal is told by the events beside it.
        case ExecutionReleased():
            row.owner, row.wake_at, row.rested = None, event.wake_at, event.reason
            row.interrupted = False
            # What stirs after an interrupt was asked for since.
            kept = event.reason in _STILL_OWED or (event.reason in STOPPED and row.stirring)
            row.owed = row.owed and kept
            row.stirring = row.stirring and event.reason in STILL_STIRRING
        case _:
            row.owed = row.stirring = True


def _interrupt(session: Projected, event: InterruptRequested) -> None:
    row = session.row
    row.owed = row.stirring = False
    row.wake_at = None
    # Something is open: until it is settled, somebody has to come.
    row.interrupted = row.owner is not None or session.open_assistant() is not None
    if not row.interrupted:
        row.rested = "declined" if event.declined else "interrupted"


def _change(row: SessionRow, event: SessionEvent, at: int) -> None:
    row.updated_at = at
    match event:
        case AgentSwitched():
            row.agent = event.agent
        case ModelSwitched():
            row.model = event.model
        case SessionMoved():
            row.directory = event.location.directory
            row.workspace_id = event.location.workspace_id
            row.subpath = event.subdirectory
        case SessionArchived():
            row.archived_at = at
        case RevertStaged():
            row.revert = event.revert
        case _:
            row.revert = None


def _local_calls(message: Message | None) -> list[ToolBlock]:
    """The calls that are ours to run: the turn goes on once they are settled."""
    if message is None or message.type != "assistant":
        return []
    return [
        block
        for block in message.content
        if isinstance(block, ToolBlock) and block.provider and not block.provider.executed
    ]


def _settled(call: ToolBlock) -> bool:
    return call.state.status in {"completed", "error"}
