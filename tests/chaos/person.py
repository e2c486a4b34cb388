"""Seeded people who answer what calls ask: late, twice, against each other, and while servers are away."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead_eventlog.errors import LogError
from fairlead_schema.events import PermissionAsked
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.stack import Stack
from tests.chaos.callers import AGAIN_S, until_answered
from tests.chaos.checker import Promised

THINKING_S: Final = (0.0, 2.5)
NOT_PENDING: Final = "PermissionNotFoundError"
ONCE: Final[dict[str, Any]] = {"reply": "once"}
WORDS: Final[dict[str, Any]] = {"reply": "reject", "message": "not this one"}
DECLINE: Final[dict[str, Any]] = {"reply": "reject"}


@dataclass(slots=True)
class Person:
    """A person who looks after one session. The same seed gives the same answers in the same order."""

    up: Stack
    session: str
    luck: random.Random
    promised: Promised
    closing: bool = False
    """Set at the end: a decline would stop the session, so it becomes a refusal with words."""
    _thoughts: set[asyncio.Task[None]] = field(default_factory=set)
    _seen: int = 0

    async def attend(self) -> None:
        """Answer everything that is asked, for ever."""
        while True:
            try:
                await self._follow()
            except LogError:
                await asyncio.sleep(AGAIN_S)

    async def close(self) -> None:
        """Let every answer that is on its way arrive; later ones stop nothing."""
        self.closing = True
        await asyncio.gather(*self._thoughts)

    async def _follow(self) -> None:
        at = Address(DEFAULT_TENANT, self.session)
        async for stored in self.up.eventlog.log.tail(at, after=self._seen):
            for recorded in stored.commit.events:
                if recorded.seq > self._seen and isinstance(recorded.event, PermissionAsked):
                    self._consider(recorded.event.request.id)
                self._seen = max(self._seen, recorded.seq)

    def _consider(self, request: str) -> None:
        """Draw everything at once, so that the timing of other tasks changes no later draw."""
        answer = self.luck.choice((ONCE, ONCE, ONCE, WORDS, DECLINE))
        answers = [(answer, self.luck.uniform(*THINKING_S))]
        if self.luck.random() < 0.3:  # A second answer, perhaps the same.
            other = self.luck.choice((answer, ONCE, WORDS))
            answers.append((other, self.luck.uniform(*THINKING_S)))
        for reply, after_s in answers:
            task = asyncio.create_task(self._reply(request, reply, after_s))
            self._thoughts.add(task)
            task.add_done_callback(self._thoughts.discard)

    async def _reply(self, request: str, answer: dict[str, Any], after_s: float) -> None:
        await asyncio.sleep(after_s)
        reply = WORDS if self.closing and answer == DECLINE else answer
        body = {"sessionID": self.session, "requestID": request, **reply}
        response = await until_answered(self.up, "permission.reply", body, final={NOT_PENDING})
        if "data" in response:
            self.promised.reply(request, reply["reply"])
