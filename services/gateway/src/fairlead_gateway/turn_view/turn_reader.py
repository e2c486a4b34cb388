"""Reads one turn for a view: its events as they come, until it is over or waits for people."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, TypeAlias

from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.turn_view.ask_replies import open_asks
from fairlead_gateway.turn_view.session_events import follow_session
from fairlead_gateway.turn_view.turn_progress import TurnProgress, seq_of
from fairlead_schema.subjects import Address
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.state.session import Session

Json: TypeAlias = dict[str, Any]

GATHER_S: Final = 0.1
"""Calls that run beside each other ask one after the other."""


async def read_turn(
    request: ApiRequest[Any, Any],
    at: Address,
    progress: TurnProgress,
    *,
    after: int,
    through_asks: bool = False,
) -> AsyncGenerator[Json, None]:
    """The events of a turn after a seq. The progress has taken each event that was given out.

    `through_asks` waits on although people are asked.
    """
    quiet = 0
    async with aclosing(follow_session(request, at, after=after)) as events:
        async for event in events:
            if event is None:
                quiet += 1
                await _look(request, at, progress, is_quiet=quiet > 1)
            else:
                quiet = 0
                if seq_of(event) is not None:
                    progress.take(event)
                yield event
            if progress.is_over:
                return
            if progress.waits_for_people and not through_asks:
                break
    await asyncio.sleep(GATHER_S)
    for id_, ask in (await open_asks(request, at)).items():
        progress.asks.setdefault(id_, ask)


def begin_at(progress: TurnProgress, session: Session) -> None:
    """Begin with a session as it is now: it may rest, or wait for people."""
    newest = session.transcript.newest_assistant()
    if newest is not None:
        progress.model = f"{newest.model.provider_id}/{newest.model.id}"
    if is_at_rest(session):
        progress.rested = session.execution.rested or "idle"
        if newest is not None and newest.error is not None:
            progress.failure = newest.error.wire()
    elif session.execution.owner is None and session.execution.rested == "parked":
        progress.rested = "parked"
    progress.asks |= {id_: ask.request.wire() for id_, ask in session.asks.permissions.items()}
    progress.asks |= {id_: ask.request.wire() for id_, ask in session.asks.questions.items()}


async def _look(
    request: ApiRequest[Any, Any], at: Address, progress: TurnProgress, *, is_quiet: bool
) -> None:
    """Look at what the stream does not show: asks of sub-agents, and a session that nobody woke."""
    if progress.rested == "parked" and not progress.asks:
        progress.asks = await open_asks(request, at)
    elif is_quiet and progress.rested is None:
        session = await load_session(request.runtime, at)
        if is_at_rest(session):
            progress.rested = session.execution.rested or "idle"
