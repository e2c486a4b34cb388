"""A cancelled request is cancelled, even when its answer comes at the same moment."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_testing.scripted_server import ScriptedServer, run_scripted_server


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with run_scripted_server() as running:
        yield running


@pytest.fixture
async def link(server: ScriptedServer) -> AsyncIterator[NatsLink]:
    opened = NatsLink(await open_client(server.address, name="test"), 5.0)
    await opened.open()
    yield opened
    await opened.close()


async def test_an_answer_at_the_moment_of_the_cancellation_does_not_undo_it(
    link: NatsLink, server: ScriptedServer
) -> None:
    """`wait_for` of Python 3.11 would undo it, and a caller that cancels and waits would wait for ever."""
    asking = asyncio.create_task(link.request("a", b""))
    question = await server.published.get()

    link.mux.take(InboundMessage(question.reply, data=b"answer"))
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_task_that_was_cancelled_before_may_still_ask(
    link: NatsLink, server: ScriptedServer
) -> None:
    """What is cleaned up on the way out asks too."""

    async def clean_up() -> bytes:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return (await link.request("a", b"")).data
        raise AssertionError

    cleaning = asyncio.create_task(clean_up())
    await asyncio.sleep(0)
    cleaning.cancel()
    await server.answer((await server.published.get()).reply, b"answer")

    assert await cleaning == b"answer"
