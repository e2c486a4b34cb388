"""Applies events to the row of a session. Pure.

The core folds the execution. The row keeps that value, and columns by which the sweep finds the
sessions that should move: somebody asked for work, and there is work to do.
"""

from collections.abc import Iterable
from typing import Final

from fairlead_projector.projection.rows import ProjectedSession, SessionRow
from fairlead_schema.events import (
    BY_TYPE,
    AgentSwitched,
    BudgetSet,
    CompactionUsed,
    ModelSwitched,
    PromptAdmitted,
    PromptPromoted,
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionArchived,
    SessionCreated,
    SessionEvent,
    SessionMoved,
    StepEnded,
)
from fairlead_schema.identity.principal import counted_principal
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.fold.execution import REDUCERS, change_budget, evolve, note_import
from fairlead_session.input.prompt_title import title_after
from fairlead_session.state.execution import Execution
from fairlead_session.state.usage import Budget

UNREADABLE: Final = "(unreadable)"

_USAGE_EVENTS: Final = (StepEnded, CompactionUsed)
_PROFILE_EVENTS: Final = (
    AgentSwitched,
    ModelSwitched,
    SessionMoved,
    SessionArchived,
    RevertStaged,
    RevertCleared,
    RevertCommitted,
)
_EXECUTION_EVENTS: Final = frozenset(REDUCERS)
_ROW_EVENTS: Final = frozenset((*_EXECUTION_EVENTS, *_USAGE_EVENTS, *_PROFILE_EVENTS, BudgetSet))
EXECUTION_EVENT_TYPES: Final = frozenset(
    type_ for (type_, _version), kind in BY_TYPE.items() if kind in {*_EXECUTION_EVENTS, BudgetSet}
)
"""The types of the events that change the execution."""


def create_row(at: Address, recorded: Recorded, position: int) -> SessionRow | None:
    """The row of a new session just before its first event; None if this event creates none."""
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
        created_by=counted_principal(recorded.by),
    )


def unreadable_row(at: Address, position: int) -> SessionRow:
    """The row of a session whose first commit is unreadable. It only carries the reason."""
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


def apply_event(session: ProjectedSession, recorded: Recorded) -> None:
    """Apply one event to the row."""
    row, event = session.row, recorded.event
    kind = type(event)
    if kind not in _ROW_EVENTS:
        return
    if kind in _EXECUTION_EVENTS:
        evolved = evolve(row.execution, event, recorded.seq)
        _set_execution(row, note_import(evolved, recorded.imported, recorded.seq))
    if isinstance(event, PromptAdmitted) and event.resume is not False:
        # A steer does not wait for the end of a back-off.
        row.wake_at = None if event.delivery == "steer" else row.wake_at
    elif isinstance(event, PromptPromoted):
        row.title = title_after(row.title, event.prompt)
    elif isinstance(event, _USAGE_EVENTS):
        row.cost += event.cost
        row.tokens = row.tokens.plus(event.tokens)
        row.updated_at = recorded.time
    elif isinstance(event, BudgetSet):
        _set_budget(row, event, recorded)
    elif isinstance(event, _PROFILE_EVENTS):
        _change_profile(row, event, recorded.time)


def fold_execution(at: Address, events: Iterable[Recorded]) -> Execution:
    """The execution of a session after these events, oldest first."""
    session = ProjectedSession(unreadable_row(at, 0))
    for recorded in events:
        apply_event(session, recorded)
    return session.row.execution


def _set_execution(row: SessionRow, execution: Execution) -> None:
    before, row.execution = row.execution, execution
    row.owner = None if execution.owner is None else execution.owner.runner
    requested = execution.compaction_requested
    row.owed = execution.owed or execution.attempt is not None or requested
    row.work_requested = execution.work_requested or requested
    row.interrupted, row.rested = execution.interrupted, execution.rested
    if execution.rest is not before.rest:
        row.wake_at = None if execution.rest is None else execution.wake_at
    if execution.imported_through is not None:
        # What was asked for at the session's origin begins nothing here.
        row.owner, row.wake_at, row.rested = None, None, None
        row.work_requested = row.interrupted = False


def _set_budget(row: SessionRow, event: BudgetSet, recorded: Recorded) -> None:
    before = Budget(row.budget_cost, row.budget_tokens)
    after = Budget(event.cost, event.tokens)
    changed = change_budget(row.execution, before=before, after=after)
    _set_execution(row, note_import(changed, recorded.imported, recorded.seq))
    row.budget_cost, row.budget_tokens = event.cost, event.tokens


def _change_profile(row: SessionRow, event: SessionEvent, at: int) -> None:
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
