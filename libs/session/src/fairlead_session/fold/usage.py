"""Folds usage: cost and tokens of the session and of its child sessions, and the budget."""

from typing import Final

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    BudgetSet,
    ChildFinished,
    CompactionUsed,
    StepEnded,
    TitleEnded,
    ToolCalled,
)
from fairlead_schema.message import AssistantMessage
from fairlead_schema.record import Recorded
from fairlead_session.calls.child_ids import TASK, child_of
from fairlead_session.execution.usage_sums import add_model_usage, add_tokens
from fairlead_session.fold import Reducers
from fairlead_session.frozen import replace
from fairlead_session.state.session import Session
from fairlead_session.state.usage import Budget, ChildUsage, Usage


def _end_step(session: Session, event: StepEnded, _recorded: Recorded) -> Usage:
    message = session.transcript.find(event.assistant_message_id)
    model = message.model if isinstance(message, AssistantMessage) else None
    return _spend(session.usage, model, event.cost, event.tokens)


def _add_request(
    session: Session, event: CompactionUsed | TitleEnded, _recorded: Recorded
) -> Usage:
    return _spend(session.usage, event.model, event.cost, event.tokens)


def _spend(usage: Usage, model: ModelRef | None, cost: float, tokens: Tokens) -> Usage:
    models = usage.models
    if model is not None:
        models = add_model_usage(models, model, cost, tokens)
    return replace(
        usage, cost=usage.cost + cost, tokens=add_tokens(usage.tokens, tokens), models=models
    )


def _set_budget(session: Session, event: BudgetSet, _recorded: Recorded) -> Usage:
    return replace(session.usage, budget=Budget(event.cost, event.tokens))


def _count_child(session: Session, event: ChildFinished, _recorded: Recorded) -> Usage:
    children = session.usage.children
    counted = ChildUsage(
        children.cost + event.cost,
        children.tokens + event.tokens,
        tuple(child for child in children.uncounted if child != event.session_id),
    )
    return replace(session.usage, children=counted)


def _expect_child(session: Session, event: ToolCalled, _recorded: Recorded) -> Usage:
    """A task call may create a child session, whose usage counts once it is known."""
    usage = session.usage
    if event.tool != TASK or event.provider.executed:
        return usage
    child = child_of(session.id, event.assistant_message_id, event.call_id)
    uncounted = (*usage.children.uncounted, child)
    return replace(usage, children=replace(usage.children, uncounted=uncounted))


REDUCERS: Final[Reducers[Usage]] = {
    StepEnded: _end_step,
    CompactionUsed: _add_request,
    TitleEnded: _add_request,
    BudgetSet: _set_budget,
    ChildFinished: _count_child,
    ToolCalled: _expect_child,
}
