"""The session that a request names: looked up once, before its route. An unknown one is refused."""

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import START
from fairlead_gateway.http.operation import TargetSession
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.reads.read_model import ReadsUnavailable
from fairlead_gateway.runtime import Runtime
from fairlead_schema.errors import ServiceUnavailable, SessionNotFound
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address


async def find_session(runtime: Runtime, at: Address, *, stored: bool = False) -> TargetSession:
    """Look a session up in the log, or in the read models if the log is away.

    A session whose last commit cannot be read exists. Its routes show what comes before.
    Raises SessionNotFound, and SessionIsStored unless a stored session is welcome.
    """
    try:
        head = await runtime.nats().log.head(at)
    except RecordError as error:
        return TargetSession(at, None, error)
    except (ServiceUnavailable, LogError) as error:
        return await _find_projected_session(runtime, at, error)
    if head == START:
        raise SessionNotFound(at.session_id)
    if head.seq == 0 and not stored:
        await load_session(runtime, at)
    return TargetSession(at, head)


async def _find_projected_session(
    runtime: Runtime, at: Address, log_error: Exception
) -> TargetSession:
    try:
        progress = await runtime.read_model.progress(at)
    except ReadsUnavailable:
        raise log_error from None
    if progress is None:
        # A session may exist before it is projected. Only the log could tell.
        raise log_error
    return TargetSession(at, None, log_error)
