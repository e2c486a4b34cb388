"""What can be read of a session whose log cannot be read to its end (FINDINGS D7)."""

from contextlib import suppress
from typing import Any

from fairlead_eventlog.ports import START, Head
from fairlead_eventlog.replicas.contiguity import locate_readable
from fairlead_eventlog.session_cache import Readable
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.session_state import load_readable
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_schema.errors import UnreadablePlace
from fairlead_session.state.session import Session


async def find_start(request: ApiRequest[Any, Any], seq: int) -> Head:
    """Where to begin to read what follows event `seq`. It never lies behind an unreadable place."""
    if seq == 0 or request.unreadable is not None or await _is_broken(request):
        return START
    return await locate_readable(request.runtime.nats().log, request.at, seq)


async def find_end(request: ApiRequest[Any, Any]) -> int:
    """The position where the session's log ended for its leader. A replica may not have it yet."""
    if request.unreadable is None:
        return request.head.position
    return await request.runtime.nats().log.last_commit_position(request.at)


async def find_unreadable_place(request: ApiRequest[Any, Any]) -> UnreadablePlace | None:
    """From which event on the session cannot be read, as the projector or the log says."""
    progress = await request.runtime.read_model.progress(request.at)
    if progress is not None and progress.broken is not None:
        return UnreadablePlace(seq=progress.seq + 1, reason=progress.broken)
    if request.unreadable is None:
        return None
    return unreadable_place(await load_readable(request.runtime, request.at))


def unreadable_place(readable: Readable[Session]) -> UnreadablePlace | None:
    """The place behind the readable beginning of a session; None if all of it can be read."""
    if readable.error is None:
        return None
    return UnreadablePlace(seq=readable.versioned.state.seq + 1, reason=str(readable.error))


async def _is_broken(request: ApiRequest[Any, Any]) -> bool:
    """Whether the projector met an unreadable place. Without Postgres only the log itself tells."""
    with suppress(ReadsUnavailable):
        progress = await request.runtime.read_model.progress(request.at)
        return progress is not None and progress.broken is not None
    return False
