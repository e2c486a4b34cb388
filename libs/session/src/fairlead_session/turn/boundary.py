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
from fairlead_session.instructions.prompt_texts import prompt_texts
from fairlead_session.instructions.reminders import steering_reminder
from fairlead_session.people.pending import withdraw_continue_question
from fairlead_session.state.inbox import PendingInput
from fairlead_session.state.session import Epoch, Session
from fairlead_session.turn import epoch
from fairlead_session.turn.lowered_history import LoweredHistory

_COMPACTED = "a compaction began history anew"
_NO_UPDATE_POSSIBLE = "a source changed in a way that no update can tell"


@dataclass(frozen=True, slots=True)
class TurnIds:
    """The ids that one boundary needs. The runner mints them."""

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
    """The changes of the context, written after the promoted input and before the request."""
    assert session.epoch is not None, "an epoch exists at every boundary"
    outcome = _compare(session, session.epoch, sample)
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
                    reason=_COMPACTED
                    if _precedes_compaction(session, session.epoch)
                    else _NO_UPDATE_POSSIBLE,
                ),
            )
        case _:
            assert_never(outcome)


def _compare(session: Session, stored: Epoch, sample: ContextSample) -> epoch.ContextOutcome:
    """After a compaction the epoch is replaced as soon as every source can be observed."""
    if _precedes_compaction(session, stored):
        outcome = epoch.replace(stored.snapshot, sample)
        if isinstance(outcome, epoch.Replaced):
            return outcome
    return epoch.reconcile(stored.snapshot, sample)


def _precedes_compaction(session: Session, stored: Epoch) -> bool:
    return stored.seq < (session.transcript.compacted_seq or 0)


def prepare_turn(
    session: Session,
    inputs: tuple[PendingInput, ...],
    sample: ContextSample,
    ids: TurnIds,
    known: LoweredHistory | None = None,
    *,
    notes: tuple[str, ...] = (),
) -> tuple[SessionEvent, ...]:
    """Close abandoned calls and asks, promote the inputs, remind of them, update the context.

    `known` is the history of an earlier request: its boundary closed the abandoned calls in it.
    `notes` are other things to tell the model now.
    """
    closed = 0 if known is None else known.lines.shared_length(session.transcript.lines)
    promoted = (
        *fail_abandoned_calls(session, closed=closed),
        *withdraw_continue_question(session),
        *promote(inputs),
    )
    changes = reconcile(session, sample, ids.system_message_id)
    # A new epoch begins without the system messages before it.
    anew = any(isinstance(change, ContextReplaced) for change in changes)
    texts = (steering_reminder(session, inputs), prompt_texts(session, inputs, anew=anew), *notes)
    reminder = "\n\n".join(text for text in texts if text) or None
    return (*promoted, *_with_reminder(changes, reminder, ids.system_message_id))


def _with_reminder(
    changes: tuple[SessionEvent, ...], reminder: str | None, message_id: MessageId
) -> tuple[SessionEvent, ...]:
    """A boundary writes one system message, in which the reminder stands before the changes."""
    if reminder is None:
        return changes
    match changes:
        case (ContextUpdated() as update, *rest):
            return (update.model_copy(update={"text": f"{reminder}\n\n{update.text}"}), *rest)
        case _:
            return (*changes, ContextUpdated(message_id=message_id, text=reminder))


def dispatch(
    ids: TurnIds, *, agent: str, model: ModelRef, step: int, request_hash: str, estimate: int
) -> AttemptDispatched:
    """The record that a request is about to be sent, in the same commit as what it is built from."""
    return AttemptDispatched(
        attempt_id=ids.attempt_id,
        assistant_message_id=ids.assistant_message_id,
        agent=agent,
        model=model,
        step=step,
        request_hash=request_hash,
        estimate=estimate,
    )
