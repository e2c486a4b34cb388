"""Seeded people who answer what calls ask: late, twice, against each other, and while servers are away."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead_eventlog.errors import LogError
from fairlead_schema.events import PermissionAsked, QuestionAsked, SessionEvent
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.stack import Stack
from tests.chaos.asks import REJECTED, REPLIED
from tests.chaos.callers import AGAIN_S, until_answered
from tests.chaos.promises import Promised

THINKING_S: Final = (0.0, 2.5)
# A deleted session is not found either.
NOT_PENDING: Final = frozenset(
    {"PermissionNotFoundError", "QuestionNotFoundError", "SessionNotFoundError"}
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, and the word that the log has for it."""

    verb: str
    word: str
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)


ONCE: Final = Answer("permission.reply", "once", {"reply": "once"})
WORDS: Final = Answer("permission.reply", "reject", {"reply": "reject", "message": "not this one"})
DECLINE: Final = Answer("permission.reply", "reject", {"reply": "reject"})
ANSWER: Final = Answer("question.reply", REPLIED, {"answers": [["red"]]})
REJECT: Final = Answer("question.reject", REJECTED)
HARMLESS: Final = {DECLINE: WORDS, REJECT: ANSWER}
"""What to say instead of an answer that would stop the session."""


@dataclass(slots=True)
class Person:
    """A person who looks after one session. The same seed gives the same answers in the same order."""

    up: Stack
    session: str
    luck: random.Random
    promised: Promised
    closing: bool = False
    """Set at the end: an answer that would stop the session is replaced by a harmless one."""
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
                if recorded.seq > self._seen:
                    self._consider(recorded.event)
                self._seen = max(self._seen, recorded.seq)

    def _consider(self, event: SessionEvent) -> None:
        """Draw everything at once, so that the timing of other tasks changes no later draw."""
        choices: tuple[Answer, ...]
        others: tuple[Answer, ...]
        match event:
            case PermissionAsked():
                choices, others = (ONCE, ONCE, ONCE, WORDS, DECLINE), (ONCE, WORDS)
            case QuestionAsked():
                choices, others = (ANSWER, ANSWER, REJECT), (ANSWER,)
            case _:
                return
        answer = self.luck.choice(choices)
        answers = [(answer, self.luck.uniform(*THINKING_S))]
        if self.luck.random() < 0.3:  # A second answer, perhaps the same.
            other = self.luck.choice((answer, *others))
            answers.append((other, self.luck.uniform(*THINKING_S)))
        for reply, after_s in answers:
            task = asyncio.create_task(self._reply(event.request.id, reply, after_s))
            self._thoughts.add(task)
            task.add_done_callback(self._thoughts.discard)

    async def _reply(self, request: str, answer: Answer, after_s: float) -> None:
        await asyncio.sleep(after_s)
        reply = HARMLESS.get(answer, answer) if self.closing else answer
        body = {"sessionID": self.session, "requestID": request, **reply.body}
        response = await until_answered(self.up, reply.verb, body, final=NOT_PENDING)
        if "data" in response:
            self.promised.reply(request, reply.word)
