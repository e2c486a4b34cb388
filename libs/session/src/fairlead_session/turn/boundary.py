"""The safe boundary: everything that becomes durable just before a provider is called."""

from dataclasses import dataclass
from typing import assert_never

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import ContextSample
from fairlead_schema.events import (
    AttemptDispatched,
    ContextInitialised,
    ContextReplaced,
    ContextSnapshotAdvanced,
    ContextUpdated,
    SessionEvent,
)
from fairlead_schema.ids import AttemptId, MessageId
from fairlead_session.execution.recovery import fail_abandoned_calls
from fairlead_session.input.promotion import promote
from fairlead_session.people.pending import withdraw_continue_question
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Epoch, Session
from fairlead_session.turn import epoch
from fairlead_session.turn.history import compacted_seq

_COMPACTED = "a compaction began history anew"
_UNTELLABLE = "a source changed in a way that no update can tell"


@dataclass(frozen=True, slots=True)
class TurnIds:
    """The ids one boundary needs, minted by the shell."""

    attempt_id: AttemptId
    assistant_message_id: MessageId
    system_message_id: MessageId


def begin_epoch(sample: ContextSample) -> tuple[SessionEvent, ...] | epoch.Blocked:
    """The events of a first baseline; it emits no system message."""
    outcome = epoch.initialise(sample)
    if isinstance(outcome, epoch.Blocked):
        return outcome
    return (ContextInitialised(baseline=outcome.parts, snapshot=dict(outcome.snapshot)),)


def reconcile(
    session: Session, sample: ContextSample, message_id: MessageId
) -> tuple[SessionEvent, ...]:
    """What changed in the context, told after the promoted input and before the call."""
    assert session.epoch is not None, "an epoch exists at every boundary"
    outcome = _compared(session, session.epoch, sample)
    match outcome:
        case epoch.ContextUnchanged() | epoch.Blocked():
            return ()
        case epoch.Updated(text=text, snapshot=snapshot):
            return (
                ContextUpdated(message_id=message_id, text=text),
                ContextSnapshotAdvanced(snapshot=dict(snapshot)),
            )
        case epoch.Replaced(baseline=fresh):
            return (
                ContextReplaced(
                    baseline=fresh.parts,
                    snapshot=dict(fresh.snapshot),
                    reason=_COMPACTED if _outlived(session, session.epoch) else _UNTELLABLE,
                ),
            )
        case _:
            assert_never(outcome)


def _compared(session: Session, stored: Epoch, sample: ContextSample) -> epoch.Outcome:
    """After a compaction a fresh baseline, as soon as one can be rendered; until then the old one."""
    if _outlived(session, stored):
        outcome = epoch.replace(stored.snapshot, sample)
        if isinstance(outcome, epoch.Replaced):
            return outcome
    return epoch.reconcile(stored.snapshot, sample)


def _outlived(session: Session, stored: Epoch) -> bool:
    return stored.seq < (compacted_seq(session) or 0)


def approach(
    session: Session, inputs: tuple[PendingInput, ...], sample: ContextSample, ids: TurnIds
) -> tuple[SessionEvent, ...]:
    """What is abandoned, promotions, the context's changes; what the request to come is made from."""
    promoted = (
        *fail_abandoned_calls(session),
        *withdraw_continue_question(session),
        *promote(inputs),
    )
    return (*promoted, *reconcile(session, sample, ids.system_message_id))


def dispatch(ids: TurnIds, *, agent: str, model: ModelRef, step: int) -> AttemptDispatched:
    """The record, in the same commit, that a request is about to leave."""
    return AttemptDispatched(
        attempt_id=ids.attempt_id,
        assistant_message_id=ids.assistant_message_id,
        agent=agent,
        model=model,
        step=step,
    )
