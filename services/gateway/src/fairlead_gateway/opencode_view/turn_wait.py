"""Holds a request until its session rests and the streams of this process have told so."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self

from fairlead_eventlog.errors import LogError
from fairlead_gateway.http.caller import require_scope
from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.commands import send_session_command
from fairlead_gateway.log.session_state import load_session
from fairlead_gateway.opencode_view.session_rules import denies_questions
from fairlead_gateway.opencode_view.view_hub import ViewHub
from fairlead_gateway.opencode_view.view_hubs import ViewHubs
from fairlead_schema.commands.asks import ReplyQuestion
from fairlead_schema.errors import Refused, ServiceUnavailable
from fairlead_schema.ids import MessageId
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.execution.commands import is_at_rest
from fairlead_session.state.session import Session

PAUSE_S: Final = 0.1
"""The client drops what it has not read from its stream when the answer comes."""
LOOK_S: Final = 5.0
"""A broadcast may be lost, so that the log is asked from time to time."""
NOBODY_ANSWERS: Final = "Nobody can answer here: decide yourself and go on"


class TurnWait:
    """One request that is held for the length of a turn."""

    def __init__(self, hubs: ViewHubs, request: ApiRequest[Any, Any]) -> None:
        self._hubs = hubs
        self._request = request
        self._hub: ViewHub | None = None

    @asynccontextmanager
    async def hold(self, message_id: MessageId) -> AsyncIterator[Self]:
        """Follow the session from now on. Clients that join late are told of the prompt's turn.

        The answer shows the turn, so the caller must be allowed to read it. Raises Forbidden.
        """
        request = self._request
        require_scope(request.principal, "session:read")
        # A wait holds as much of this process as a stream does.
        with request.runtime.limits.open_stream(request.principal.name):
            async with self._hubs.enter(request.runtime, request.tenant) as hub:
                self._hub = hub
                await hub.hold(request.at, message_id)
                try:
                    yield self
                finally:
                    hub.release(request.at, message_id)

    async def session(self) -> Session:
        """The session as the hub knows it, else as the log has it. Raises SessionNotFound."""
        assert self._hub is not None, "the wait is entered first"
        known = self._hub.sessions.peek(self._request.at)
        if known is not None and known.profile is not None:
            return known
        return await load_session(self._request.runtime, self._request.at)

    async def until_rest(self, seq: int, *, by_program: bool = False) -> Session | None:
        """The session at rest after event `seq`; None if the process stops, or the client goes, before."""
        assert self._hub is not None, "the wait is entered first"

        def is_over(session: Session) -> bool:
            return session.seq >= seq and is_at_rest(session)

        stopping = asyncio.ensure_future(self._until_nobody_waits())
        answering = asyncio.ensure_future(self._answer_questions(by_program=by_program))
        try:
            while not stopping.done():
                resting: asyncio.Future[Any] = self._hub.wait_until(self._request.at, is_over)
                await asyncio.wait(
                    {resting, stopping}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
                )
                if resting.done() and resting.exception() is None:
                    await asyncio.sleep(PAUSE_S)
                    session: Session = resting.result()
                    return session
                resting.cancel()
                if (found := await self._look(is_over)) is not None:
                    # The hub missed the end of the turn, and so did its clients.
                    await self._hub.repeat(self._request.at)
                    await asyncio.sleep(PAUSE_S)
                    return found
            return None
        finally:
            await cancel_and_wait(stopping, answering)

    async def _until_nobody_waits(self) -> None:
        """Wait until the process stops, or the client goes away. The turn goes on without them."""
        stopping = asyncio.ensure_future(self._request.runtime.shutdown.wait())
        leaving = asyncio.ensure_future(_wait_for_disconnect(self._request))
        try:
            await asyncio.wait({stopping, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(stopping, leaving)

    async def _look(self, is_over: Callable[[Session], bool]) -> Session | None:
        """The session as the log has it, if it rests."""
        try:
            session = await load_session(self._request.runtime, self._request.at)
        except (ServiceUnavailable, LogError):
            await asyncio.sleep(PAUSE_S)
            return None
        return session if is_over(session) else None

    async def _answer_questions(self, *, by_program: bool) -> None:
        """Answer for a client that shows no questions: it would wait for ever."""
        request = self._request
        if not by_program and not denies_questions(await self.session()):
            return
        assert self._hub is not None, "the wait is entered first"
        while True:
            asked = (await self._hub.wait_until(request.at, _asks)).asks.questions
            for pending in asked.values():
                nobody = tuple((NOBODY_ANSWERS,) for _ in pending.request.questions)
                command = ReplyQuestion(
                    session_id=request.at.session_id,
                    request_id=pending.request.id,
                    answers=nobody,
                )
                with suppress(Refused):
                    await send_session_command(request, "question.reply", command)
            # The stream brings the answer a moment later.
            await asyncio.sleep(PAUSE_S)


def _asks(session: Session) -> bool:
    return bool(session.asks.questions)


async def _wait_for_disconnect(request: ApiRequest[Any, Any]) -> None:
    while (await request.http.receive())["type"] != "http.disconnect":
        pass
