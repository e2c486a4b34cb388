"""Purges a session whose log cannot be read: the last event goes behind whatever stands there."""

import logging

from fairlead_eventlog.errors import AppendConflict
from fairlead_eventlog.ports import START, Head
from fairlead_ingest.command_context import APPEND_TRIES, CommandContext
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.record import Draft, RecordError
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.rpc.caller import current_caller
from fairlead_session.execution.commands import last_event
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)


async def purge_unreadable(
    context: CommandContext, at: Address, *, reason: str
) -> tuple[Session, int]:
    """Append the last event behind the leader's end of the log, whatever stands before it.

    Returns the readable beginning of the session, and the seq of its last event.
    Raises SessionNotFound for a session that is purged already.
    """
    before = (await context.load_readable(at)).versioned.state
    # One commit in all tries: an acknowledgement that was lost is recognised by its ids.
    commit_id, draft = ids.commit_id(), Draft(ids.event_id(), ids.now_ms(), last_event(before))
    for _ in range(APPEND_TRIES):
        end = await context.eventlog.log.end(at)
        if end == START:
            raise SessionNotFound(at.session_id)
        after = Head(end.position, max(end.seq, _last_seq(before)))
        try:
            stored = await context.eventlog.log.append(
                at, commit_id, (draft,), after=after, by=current_caller()
            )
        except (AppendConflict, RecordError):
            continue  # Another writer was first. What it wrote may be unreadable too.
        context.forget(at)
        log.warning(
            "session purged without its log: the projector erases what is left of it",
            extra={"session_id": at.session_id, "reason": reason},
        )
        return before, stored.head.seq
    raise ServiceUnavailable("The session is too busy to write to now", service="session.log")


def _last_seq(session: Session) -> int:
    """The last event that clients may have seen, also if the session is stored in a file."""
    return session.seq if session.stored is None else session.stored.file.seq
