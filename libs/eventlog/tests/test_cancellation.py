"""A cancelled request is cancelled, even when its answer comes at the same moment."""

import asyncio
from typing import Any, cast

import pytest
from nats.aio.msg import Msg

from fairlead_eventlog.jetstream.client import NatsClient
from fairlead_eventlog.jetstream.link import NatsLink


class Waiting:
    """A client that waits for its answers as nats-py does."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

    async def request(self, *_args: Any, timeout: float, **_kwargs: Any) -> Msg:  # noqa: ANN401, ASYNC109
        return await asyncio.wait_for(self.answer, timeout)


async def test_an_answer_at_the_moment_of_the_cancellation_does_not_undo_it() -> None:
    """On Python 3.11 `wait_for` would undo it, and a caller that cancels and waits would wait for ever."""
    client = Waiting()
    link = NatsLink(cast("NatsClient", client), 5.0)
    asking = asyncio.create_task(link.request("a", b""))
    await asyncio.sleep(0)

    client.answer.set_result(cast("Msg", object()))
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_task_that_was_cancelled_before_may_still_ask() -> None:
    """What is cleaned up on the way out asks too."""
    client, answer = Waiting(), cast("Msg", object())
    link = NatsLink(cast("NatsClient", client), 5.0)

    async def clean_up() -> Msg:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return await link.request("a", b"")
        raise AssertionError

    cleaning = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    cleaning.cancel()
    await asyncio.sleep(0)
    client.answer.set_result(answer)

    assert await cleaning is answer
