"""Call snapshots: a request carries the state of its call, so that a worker need not read the log.

A snapshot is valid at one head of the log. The worker decides from the snapshot as from the session.
Its commit succeeds only if the head is still the same; else the worker reads (docs/adr/0020).
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
    """The snapshot of a call that nobody has begun. None if its decision needs more of the session."""
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
    if call.by_person or pending_ask(session, call) is not None or call.tool == TASK:
        return None  # A task is decided from its child session, which the worker must read.
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
        created_by=session.profile.created_by,
    )


def session_from_snapshot(
    session_id: SessionId, assistant_message_id: MessageId, call_id: CallId, snapshot: CallSnapshot
) -> Session:
    """The part of the session that a worker needs to begin the call, settle it, and wake a runner."""
    call = UnsettledCall(
        assistant_message_id=assistant_message_id,
        call_id=call_id,
        tool=snapshot.tool,
        input=snapshot.input,
        agent=snapshot.agent,
        retry=snapshot.retry,
        revision=snapshot.revision,
        called_seq=snapshot.called_seq,
    )
    profile = Profile(
        title="",
        project_id=snapshot.project_id,
        location=snapshot.location,
        created=0,
        updated=0,
        created_by=snapshot.created_by,
    )
    return Session(
        id=session_id,
        seq=snapshot.seq,
        profile=profile,
        execution=Execution(
            generation=snapshot.generation,
            owner=Owner(snapshot.runner, snapshot.generation),
            owed=True,
            open_calls=(CallKey(assistant_message_id, call_id),),
        ),
        calls=(call,),
    )
