"""New commits as the server republishes them: hints for those who know the session already."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import nats.errors
from nats.aio.subscription import Subscription

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import SEQUENCE, NatsLink
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_schema import subjects
from fairlead_schema.subjects import Address

LAST_SEQUENCE: Final = "Nats-Last-Sequence"


class NatsCommitBroadcasts:
    """One subscription for each session that somebody listens to."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._closing: set[asyncio.Task[None]] = set()

    async def listen(
        self, at: Address, receive: Callable[[CommitHint | None], None]
    ) -> Callable[[], None]:
        def take(msg: InboundMessage) -> None:
            receive(parse_broadcast(msg))

        try:
            subscription = await self._link.listen(subjects.commit(at), take)
        except nats.errors.Error as error:
            raise LogUnavailable(str(error) or type(error).__name__) from error
        # What was published while the connection was away never comes.
        unregister = self._link.on_reconnect(lambda: receive(None))

        def stop() -> None:
            unregister()
            task = asyncio.create_task(_unsubscribe(subscription))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

        return stop


def parse_broadcast(msg: InboundMessage) -> CommitHint:
    """The commit that the server republished, with the positions that its headers name."""
    position, previous = msg.find_header(SEQUENCE), msg.find_header(LAST_SEQUENCE)
    assert position is not None, "the server names the position of what it republishes"
    assert previous is not None, "and the one before"
    return CommitHint(int(position), int(previous), msg.data)


async def _unsubscribe(subscription: Subscription) -> None:
    with suppress(nats.errors.Error):
        await subscription.unsubscribe()
