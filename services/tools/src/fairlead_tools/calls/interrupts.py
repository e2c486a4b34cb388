"""Watches a session's log while a tool runs, and stops the tool when the log says so."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, cast

from fairlead_eventlog.errors import LogError
from fairlead_eventlog.ports import SessionLog, StoredCommit
from fairlead_schema.record import RecordError
from fairlead_schema.subjects import Address
from fairlead_session.calls.lifecycle import HaltReason, halt_reason
from fairlead_session.state.calls import UnsettledCall

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
# Most calls are over sooner and are not worth a subscription. The watch begins at the start event,
# so it misses nothing.
SUBSCRIBE_DELAY_S: Final = 0.05


async def watch_interrupts(
    session_log: SessionLog,
    at: Address,
    call: UnsettledCall,
    after: int,
    stop: Callable[[HaltReason], None],
) -> None:
    """Read the session from a sequence on, through outages, until the run has to stop."""
    await asyncio.sleep(SUBSCRIBE_DELAY_S)
    while True:
        try:
            tail = cast("AsyncGenerator[StoredCommit, None]", session_log.tail(at, after=after))
            async with aclosing(tail):
                async for stored in tail:
                    after = stored.head.seq
                    why = _reason_to_stop(call, stored)
                    if why is not None:
                        stop(why)
                        return
        except LogError as error:
            ids = {"session_id": at.session_id, "call_id": call.call_id}
            extra = {**ids, "reason": str(error), "again_s": RETRY_S}
            log.warning("watch for interrupts failed: it starts again", extra=extra)
            await asyncio.sleep(RETRY_S)
        except RecordError:
            # The log cannot be read from here on. The settlement reads it too, and reports that.
            return


def _reason_to_stop(call: UnsettledCall, stored: StoredCommit) -> HaltReason | None:
    reasons = (halt_reason(call, recorded.event) for recorded in stored.commit.events)
    return next((why for why in reasons if why is not None), None)
