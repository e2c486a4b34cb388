"""Watches a session's log while a tool runs, and stops the run when the log says so."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, cast

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import SessionLog, StoredCommit
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_session.calls.lifecycle import HaltReason, halt_reason
from fairlead_session.state.calls import UnsettledCall
from fairlead_tools.calls.execution import ToolRun

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
# Most calls are over sooner: they are not worth a subscription. Nothing is missed meanwhile.
PATIENCE_S: Final = 0.05


async def watch(
    session_log: SessionLog, at: Address, call: UnsettledCall, after: int, performance: ToolRun
) -> None:
    """Follow the session from its start event on, through outages, until the run must stop."""
    await asyncio.sleep(PATIENCE_S)
    while True:
        try:
            tail = cast("AsyncGenerator[StoredCommit, None]", session_log.tail(at, after=after))
            async with aclosing(tail):
                async for stored in tail:
                    after = stored.head.seq
                    why = _halted(call, stored)
                    if why is not None:
                        performance.stop(why)
                        return
        except LogError as error:
            ids = {"session_id": at.session_id, "call_id": call.call_id}
            log.warning("watch paused", extra={**ids, "reason": str(error)})
            await asyncio.sleep(RETRY_S)
        except RecordError:
            # Nothing after this can be read: the settlement will find that out and say so.
            return


def _halted(call: UnsettledCall, stored: StoredCommit) -> HaltReason | None:
    found = (halt_reason(call, recorded.event) for recorded in stored.commit.events)
    return next((why for why in found if why is not None), None)
