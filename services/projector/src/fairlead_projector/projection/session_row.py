"""Applies events to the row of a session. Pure.

The core folds the execution. The row keeps that value, and columns by which the sweep finds the
sessions that should move: somebody asked for work, and there is work to do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

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
    SessionDescribed,
    SessionEvent,
    SessionMoved,
    SessionUnarchived,
    StepEnded,
    TitleEnded,
)
from fairlead_schema.identity.principal import counted_principal
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_session.execution.usage_sums import add_tokens
from fairlead_session.fold.execution import (
    KEEPS_IMPORT,
    REDUCERS,
    change_budget,
    evolve,
    note_import,
)
from fairlead_session.input.prompt_title import title_after
from fairlead_session.state.execution import Execution
from fairlead_session.state.usage import Budget

UNREADABLE: Final = "(unreadable)"

_PROFILE_EVENTS: Final = (
    AgentSwitched,
    ModelSwitched,
    SessionMoved,
    SessionArchived,
    SessionUnarchived,
    RevertStaged,
    RevertCleared,
    RevertCommitted,
)
EXECUTION_EVENT_TYPES: Final = frozenset(
    type_ for (type_, _version), kind in BY_TYPE.items() if kind in {*REDUCERS, BudgetSet}
)
"""The types of the events that change the execution."""

RowChange: TypeAlias = Callable[[SessionRow, Any, Recorded], None]
"""Takes the row, the event, and its record."""


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
        pool=event.pool,
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
    event = recorded.event
    for change in ROW_CHANGES.get(type(event), ()):
        change(session.row, event, recorded)


def fold_execution(at: Address, events: Iterable[Recorded]) -> Execution:
    """The execution of a session after these events, oldest first."""
    session = ProjectedSession(unreadable_row(at, 0))
    for recorded in events:
        apply_event(session, recorded)
    return session.row.execution


def _evolve_execution(row: SessionRow, event: SessionEvent, recorded: Recorded) -> None:
    evolved = evolve(row.execution, event, recorded.seq)
    if recorded.imported is not None or type(event) not in KEEPS_IMPORT:
        evolved = note_import(evolved, recorded.imported, recorded.seq)
    _set_execution(row, evolved)


def _set_execution(row: SessionRow, execution: Execution) -> None:
    before, row.execution = row.execution, execution
    row.owner = None if execution.owner is None else execution.owner.runner
    requested = (
        execution.compaction_requested
        or execution.shell_requested
        or execution.revert_requested
        or execution.move_requested
    )
    row.owed = execution.owed or execution.attempt is not None or requested
    row.work_requested = execution.work_requested or requested
    row.interrupted, row.rested = execution.interrupted, execution.rested
    if execution.rest is not before.rest:
        row.wake_at = None if execution.rest is None else execution.wake_at
    if execution.imported_through is not None:
        # What was asked for at the session's origin begins nothing here.
        row.owner, row.wake_at, row.rested = None, None, None
        row.work_requested = row.interrupted = False


def _end_back_off(row: SessionRow, event: PromptAdmitted, _recorded: Recorded) -> None:
    if event.resume is not False and event.delivery == "steer":
        # A steer does not wait for the end of a back-off.
        row.wake_at = None


def _change_title(row: SessionRow, event: PromptPromoted, _recorded: Recorded) -> None:
    row.title = title_after(row.title, event.prompt)


def _end_title(row: SessionRow, event: TitleEnded, _recorded: Recorded) -> None:
    row.title = event.title or row.title
    row.cost += event.cost
    row.tokens = add_tokens(row.tokens, event.tokens)


def _describe(row: SessionRow, event: SessionDescribed, recorded: Recorded) -> None:
    row.title, row.updated_at = event.title or row.title, recorded.time
    row.metadata = row.metadata if event.metadata is None else event.metadata


def _add_usage(row: SessionRow, event: StepEnded | CompactionUsed, recorded: Recorded) -> None:
    row.cost += event.cost
    row.tokens = add_tokens(row.tokens, event.tokens)
    row.updated_at = recorded.time


def _set_budget(row: SessionRow, event: BudgetSet, recorded: Recorded) -> None:
    before = Budget(row.budget_cost, row.budget_tokens)
    after = Budget(event.cost, event.tokens)
    changed = change_budget(row.execution, before=before, after=after)
    _set_execution(row, note_import(changed, recorded.imported, recorded.seq))
    row.budget_cost, row.budget_tokens = event.cost, event.tokens


def _change_profile(row: SessionRow, event: SessionEvent, recorded: Recorded) -> None:
    row.updated_at = at = recorded.time
    match event:
        case AgentSwitched():
            row.agent = event.agent
        case ModelSwitched():
            row.model = event.model
        case SessionMoved():
            row.directory = event.location.directory
            row.workspace_id = event.location.workspace_id
            row.subpath, row.pool = event.subdirectory, event.pool
        case SessionArchived():
            row.archived_at = at
        case SessionUnarchived():
            row.archived_at = None
        case RevertStaged():
            row.revert = event.revert
        case _:
            row.revert = None


def _row_changes(kind: type[SessionEvent]) -> Iterator[RowChange]:
    """What an event of this class changes in a row, in order."""
    if kind in REDUCERS:
        yield _evolve_execution
    if kind is PromptAdmitted:
        yield _end_back_off
    elif kind is PromptPromoted:
        yield _change_title
    elif kind is TitleEnded:
        yield _end_title
    elif kind is SessionDescribed:
        yield _describe
    elif kind in {StepEnded, CompactionUsed}:
        yield _add_usage
    elif kind is BudgetSet:
        yield _set_budget
    elif kind in _PROFILE_EVENTS:
        yield _change_profile


ROW_CHANGES: Final[Mapping[type[SessionEvent], tuple[RowChange, ...]]] = {
    kind: changes for kind in BY_TYPE.values() if (changes := tuple(_row_changes(kind)))
}
"""What each event changes in a row. An event that is not here changes no row."""
