"""Briefs: what a request says of its call, so that a worker need not read the session first.

A brief holds at one head of the log and nowhere else. The worker decides from it exactly as from
the session, and writes only if the head is still that one; else it reads (docs/adr/0020).
"""

from fairlead_schema.ids import CallId, MessageId, SessionId
from fairlead_schema.tools.request import CallSnapshot
from fairlead_session.calls.child_ids import TASK
from fairlead_session.fold.calls import find_call
from fairlead_session.people.pending import pending_ask
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.execution import CallKey, Execution, Owner
from fairlead_session.state.session import Profile, Session


def snapshot_call(
    session: Session, position: int, assistant_message_id: MessageId, call_id: CallId
) -> CallSnapshot | None:
    """What there is to know of a call that nobody has begun; None where more than this counts."""
    call = find_call(session, assistant_message_id, call_id)
    if (
        call is None
        or session.profile is None
        or session.execution.owner is None
        or session.execution.interrupted
    ):
        return None
    if call.worker is not None or call.grants or call.deferred_until is not None:
        return None
    if pending_ask(session, call) is not None or call.tool == TASK:
        return None  # Whoever attends a task reads its session: what is decided comes from there.
    return CallSnapshot(
        position=position,
        seq=session.seq,
        runner=session.execution.owner.runner,
        generation=session.execution.generation,
        project_id=session.profile.project_id,
        location=session.profile.location,
        tool=call.tool,
        input=dict(call.input),
        agent=call.agent,
        retry=call.retry,
        revision=call.revision,
        called_seq=call.called_seq,
    )


def session_from_snapshot(
    session_id: SessionId, assistant_message_id: MessageId, call_id: CallId, told: CallSnapshot
) -> Session:
    """The session as far as the call is concerned: enough to begin it, to settle it, to wake."""
    call = UnsettledCall(
        assistant_message_id=assistant_message_id,
        call_id=call_id,
        tool=told.tool,
        input=told.input,
        agent=told.agent,
        retry=told.retry,
        revision=told.revision,
        called_seq=told.called_seq,
    )
    profile = Profile(
        title="", project_id=told.project_id, location=told.location, created=0, updated=0
    )
    return Session(
        id=session_id,
        seq=told.seq,
        profile=profile,
        execution=Execution(
            generation=told.generation,
            owner=Owner(told.runner, told.generation),
            owed=True,
            open_calls=(CallKey(assistant_message_id, call_id),),
        ),
        calls=(call,),
    )
