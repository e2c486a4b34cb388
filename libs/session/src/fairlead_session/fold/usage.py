"""Folds usage: cost and tokens of the session and of its child sessions, and the budget."""

from typing import TypeAlias, assert_never

from fairlead_schema.events import BudgetSet, ChildFinished, CompactionUsed, StepEnded, ToolCalled
from fairlead_schema.record import Recorded
from fairlead_session.calls.child_ids import TASK, child_of
from fairlead_session.frozen import replace
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget, ChildUsage, Usage

UsageEvent: TypeAlias = StepEnded | CompactionUsed | BudgetSet | ChildFinished | ToolCalled


def evolve(session: Session, event: UsageEvent, _recorded: Recorded) -> Usage:
    """Apply one event that reports usage or limits it."""
    usage = session.usage
    match event:
        case StepEnded() | CompactionUsed():
            return replace(
                usage, cost=usage.cost + event.cost, tokens=usage.tokens.plus(event.tokens)
            )
        case BudgetSet(cost=cost, tokens=tokens):
            return replace(usage, budget=Budget(cost, tokens))
        case ChildFinished():
            return replace(usage, children=_add(usage.children, event))
        case ToolCalled():
            return _expect_child(session, event)
        case _:
            assert_never(event)


def _add(children: ChildUsage, event: ChildFinished) -> ChildUsage:
    return ChildUsage(
        children.cost + event.cost,
        children.tokens + event.tokens,
        tuple(child for child in children.uncounted if child != event.session_id),
    )


def _expect_child(session: Session, event: ToolCalled) -> Usage:
    """A task call may create a child session, whose usage counts once it is known."""
    usage = session.usage
    if event.tool != TASK or event.provider.executed:
        return usage
    child = child_of(session.id, event.assistant_message_id, event.call_id)
    uncounted = (*usage.children.uncounted, child)
    return replace(usage, children=replace(usage.children, uncounted=uncounted))
