"""Answers the questions of the NATS service API (NATS ADR-32) on the connection of the log.

A service with verbs answers where it serves them. A gateway and a runner serve none.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol, TypeAlias

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.thin.frames import InboundMessage

Answers: TypeAlias = Iterable[tuple[str, Callable[[], bytes]]]
"""Each subject with what makes its answer."""


class SelfDescription(Protocol):
    """Tells whoever asks that this process is there, until its connection ends."""

    async def start_answering(self, answers: Answers) -> None:
        """Answer on these subjects from now on."""


class NatsSelfDescription:
    """One subscription for each subject."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def start_answering(self, answers: Answers) -> None:
        for subject, answer in answers:
            await self._answer(subject, answer)

    async def _answer(self, subject: str, answer: Callable[[], bytes]) -> None:
        def receive(msg: InboundMessage) -> bool:
            return not msg.reply or self._link.client.try_send(msg.reply, answer())

        async def receive_later(msg: InboundMessage) -> None:
            with suppress(LogUnavailable):
                await self._link.send(msg.reply, answer())

        await self._link.client.subscribe_directly(subject, receive, take_later=receive_later)


class MemorySelfDescription:
    """In memory nobody asks."""

    async def start_answering(self, answers: Answers) -> None:
        """Nothing to do."""
