"""Watches a session and its sub-agents for what they ask people."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Final

from fairlead_cli.acp.editor_asks import EditorAsks
from fairlead_cli.acp.translation.replay import ANSWERED, ASKED, SETTLED, open_asks, open_calls
from fairlead_client import AsyncFairlead, ClientError, ReceivedEvent
from fairlead_schema.errors import SessionNotFound
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.calls.child_ids import TASK, child_of

log = logging.getLogger(__name__)

CHILD_PAUSE_S: Final = 0.3


class AskWatcher:
    """The editor knows one session, and is asked for all that work below it."""

    def __init__(self, fairlead: AsyncFairlead, asks: EditorAsks) -> None:
        self._fairlead = fairlead
        self._asks = asks
        self._children: dict[str, asyncio.Task[None]] = {}

    def begin(self, session_id: str, past: Sequence[ReceivedEvent]) -> None:
        """Take up what is open after the past events: asks that wait, and sub-agents that work."""
        for event in (*open_asks(past), *open_calls(past)):
            self.take(session_id, event)

    def take(self, session_id: str, event: ReceivedEvent) -> None:
        """Take a new event of the session or of a sub-agent."""
        data = event.data
        if event.type in ASKED:
            self._asks.ask(event)
        elif event.type in ANSWERED:
            self._asks.drop(data["requestID"])
        elif event.type == "tool.called" and data["tool"] == TASK:
            child = child_of(session_id, data["assistantMessageID"], data["callID"])
            if child not in self._children:
                self._children[child] = asyncio.create_task(self._watch(child))
        elif event.type in SETTLED:
            child = child_of(session_id, data["assistantMessageID"], data["callID"])
            if task := self._children.pop(child, None):
                task.cancel()

    async def close(self) -> None:
        await cancel_and_wait(*self._children.values())
        await self._asks.close()

    async def _watch(self, child: str) -> None:
        """Follow a sub-agent until its call has its result. Its session may not be there yet."""
        while True:
            with suppress(SessionNotFound):
                try:
                    await self._follow(child)
                except ClientError as error:
                    log.warning("a sub-agent is not followed for a while: %s", error)
            await asyncio.sleep(CHILD_PAUSE_S)

    async def _follow(self, child: str) -> None:
        past = [event async for event in self._fairlead.events(child, with_notices=True)]
        self.begin(child, past)
        after = max((event.seq or 0 for event in past), default=0)
        async with aclosing(self._fairlead.follow(child, after=after)) as events:
            async for event in events:
                self.take(child, event)
