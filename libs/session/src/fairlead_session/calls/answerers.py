"""Who settles the open calls of a session: workers soon, or others at some time."""

from fairlead_session.calls.child_ids import TASK
from fairlead_session.people.pending import ready_calls
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session


def waits_for_others(session: Session) -> bool:
    """Whether no worker runs an open call: people, child sessions and other services answer them all.

    That may take days, and each answer wakes the session. So no runner waits for it.
    """
    return bool(session.calls) and all(map(_is_answered_elsewhere, ready_calls(session)))


def _is_answered_elsewhere(call: UnsettledCall) -> bool:
    return call.tool == TASK or call.deferred_until is not None
