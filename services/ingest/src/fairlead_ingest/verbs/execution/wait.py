"""`session.wait`: answer when a session is at rest."""

import asyncio
from typing import Final

from fairlead_ingest.command_context import CommandContext, ContextDep
from fairlead_ingest.existing_session import check_exists
from fairlead_schema.commands.history import WaitForRest
from fairlead_schema.commands.session import SeqReached
from fairlead_schema.errors import LimitReached, ServiceUnavailable
from fairlead_schema.subjects import Address
from fairlead_service.rpc.server import TenantParam
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.state.session import Session

WAITS_MAX: Final = 256
"""How many requests of one process may wait at once. Each holds a place of the verb's server."""


async def wait(context: ContextDep, tenant: TenantParam, command: WaitForRest) -> SeqReached:
    """Wait until the session rests. Raises SessionNotFound, and ServiceUnavailable if it works on."""
    if context.waits >= WAITS_MAX:
        raise LimitReached(f"{WAITS_MAX} requests wait for sessions: try again in a moment")
    at = Address(tenant, command.session_id)
    context.waits += 1
    try:
        seq = await _seq_at_rest(context, at, command.timeout_s)
    finally:
        context.waits -= 1
    if seq is None:
        text = f"The session is not at rest after {command.timeout_s:g} s: wait again"
        raise ServiceUnavailable(text, service="session.wait")
    return SeqReached(session_id=at.session_id, seq=seq)


async def _seq_at_rest(context: CommandContext, at: Address, timeout_s: float) -> int | None:
    """Where the session rests; None: it works on, or this process stops."""
    seen = 0

    def rests(session: Session) -> bool:
        nonlocal seen
        seen = check_exists(session).seq
        return is_at_rest(session)

    following = asyncio.ensure_future(context.follow_until(at, rests))
    stopping = asyncio.ensure_future(context.stopping.wait())
    try:
        tasks = {following, stopping}
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            return None
        following.result()
        return seen
    finally:
        await cancel_and_wait(following, stopping)
