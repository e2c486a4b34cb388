"""The contract of requests and publishes, on the thin path and on nats-py's ordinary one."""

import asyncio
import logging
from collections.abc import AsyncIterator
from importlib.metadata import version

import nats.errors
import pytest

from fairlead_eventlog.errors import LogUnavailable, MessageTooLarge, NoResponders
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer
from fairlead_eventlog.jetstream.requests import NatsRequests
from fairlead_eventlog.jetstream.thin import thin_client
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.jetstream.thin.thin_client import find_changes
from fairlead_testing.scripted_server import MAX_PAYLOAD, ScriptedServer, run_scripted_server

HANG_S = 30.0
LONG_S = 20.0
SHORT_S = 0.05


@pytest.fixture(params=["thin", "ordinary"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The thin path, and what is left if nats-py looks different inside."""
    if request.param == "ordinary":
        monkeypatch.setattr(thin_client, "find_changes", lambda _client: "_pending")
    return str(request.param)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with run_scripted_server() as running:
        yield running


@pytest.fixture
async def link(way: str, server: ScriptedServer) -> AsyncIterator[NatsLink]:
    opened = NatsLink(await open_client(server.address, name="test"), LONG_S)
    assert opened.client.is_thin == (way == "thin")
    await opened.open()
    async with asyncio.timeout(HANG_S):
        yield opened
    await opened.close()


def ask(link: NatsLink, body: bytes = b"?", *, timeout_s: float = LONG_S) -> asyncio.Task[bytes]:
    return asyncio.create_task(NatsRequests(link).request("verb", body, timeout_s=timeout_s))


async def test_an_answer_comes_to_the_request_that_it_answers(
    link: NatsLink, server: ScriptedServer
) -> None:
    asking = [ask(link, str(n).encode()) for n in range(5)]
    questions = [await server.published.get() for _ in asking]
    for question in reversed(questions):
        await server.answer(question.reply, b"answer to " + question.body)

    assert await asyncio.gather(*asking) == [f"answer to {n}".encode() for n in range(5)]
    assert link.mux.outstanding == 0
    assert len({question.reply for question in questions}) == 5


async def test_a_lost_answer_is_a_timeout_and_leaves_nothing(
    link: NatsLink, server: ScriptedServer
) -> None:
    with pytest.raises(NoAnswer):
        await link.request("verb", b"", timeout_s=SHORT_S)
    with pytest.raises(LogUnavailable, match="did not answer"):
        await ask(link, timeout_s=SHORT_S)

    assert server.published.qsize() == 2
    assert link.mux.outstanding == 0


async def test_a_late_answer_is_nobodys(link: NatsLink, server: ScriptedServer) -> None:
    with pytest.raises(NoAnswer):
        await link.request("verb", b"", timeout_s=SHORT_S)
    late = await server.published.get()
    asking = ask(link)
    question = await server.published.get()
    await server.answer(late.reply, b"late")
    await server.answer(question.reply, b"in time")
    await server.answer(question.reply, b"twice")

    assert await asking == b"in time"
    assert link.mux.outstanding == 0


async def test_the_server_says_at_once_that_nobody_listens(
    link: NatsLink, server: ScriptedServer
) -> None:
    asking = ask(link)
    await server.find_nobody((await server.published.get()).reply)

    with pytest.raises(NoResponders):
        await asking
    assert link.mux.outstanding == 0


async def test_another_status_with_headers_is_an_answer(
    link: NatsLink, server: ScriptedServer
) -> None:
    asking = asyncio.create_task(link.request("verb", b"", headers={"Sent": "with\r\nBad: 1"}))
    question = await server.published.get()
    sent = {"Status": "404", "Description": "No Messages", "Nats-Num-Pending": "0"}
    await server.answer(question.reply, b"", sent)
    answer = await asking

    assert question.raw_headers == b"NATS/1.0\r\nSent: with  Bad: 1\r\n\r\n"
    assert answer.is_status
    assert answer.headers == sent


async def test_a_lost_connection_fails_what_was_asked_and_serves_what_is_asked_next(
    link: NatsLink, server: ScriptedServer
) -> None:
    lost = ask(link, b"lost", timeout_s=0.5)
    await server.published.get()
    server.drop_client()
    while link.client.is_connected:
        await asyncio.sleep(0.01)
    meanwhile = ask(link, b"meanwhile")

    with pytest.raises(LogUnavailable):
        await lost
    question = await server.published.get()
    assert question.body == b"meanwhile", "it waited for the connection"
    while len(server._subscriptions) < 1:  # noqa: SLF001 - what the client has subscribed anew
        await asyncio.sleep(0.01)
    await server.answer(question.reply, b"there again")
    assert await meanwhile == b"there again"
    assert server.connections == 2
    assert link.mux.outstanding == 0


async def test_a_cancelled_request_leaves_nothing(link: NatsLink, server: ScriptedServer) -> None:
    asking = [ask(link) for _ in range(10)]
    questions = [await server.published.get() for _ in asking]
    for task in asking:
        task.cancel()
    ended = await asyncio.gather(*asking, return_exceptions=True)
    for question in questions:
        await server.answer(question.reply, b"too late")

    assert all(isinstance(end, asyncio.CancelledError) for end in ended)
    assert link.mux.outstanding == 0
    after = ask(link)
    await server.answer((await server.published.get()).reply, b"still served")
    assert await after == b"still served"


async def test_what_is_too_large_is_refused_and_the_connection_stays(
    link: NatsLink, server: ScriptedServer
) -> None:
    body = b"x" * (MAX_PAYLOAD + 1)
    with pytest.raises(MessageTooLarge, match="exceed"):
        await link.request("verb", body)
    with pytest.raises(MessageTooLarge):
        await link.send("verb", body)

    asking = ask(link)
    await server.answer((await server.published.get()).reply, b"still served")
    assert await asking == b"still served"
    assert server.connections == 1
    assert link.mux.outstanding == 0


@pytest.mark.parametrize("way", ["thin"], indirect=True)
async def test_headers_count_as_the_server_counts_them(link: NatsLink) -> None:
    """The server would end the connection."""
    with pytest.raises(MessageTooLarge):
        await link.send("verb", b"x" * MAX_PAYLOAD, headers={"A": "b"})


@pytest.mark.parametrize("subject", ["", "two words", "a\r\nPUB b 0\r\n", "tab\there"])
async def test_a_subject_cannot_hold_another_command(link: NatsLink, subject: str) -> None:
    with pytest.raises(nats.errors.BadSubjectError):
        await link.send(subject, b"")
    with pytest.raises(nats.errors.BadSubjectError):
        await link.request(subject, b"")
    assert link.mux.outstanding == 0


async def test_a_slow_server_holds_back_its_senders_and_loses_nothing(
    link: NatsLink, server: ScriptedServer
) -> None:
    body, count, sent = b"x" * 500_000, 100, 0

    async def send_all() -> None:
        nonlocal sent
        for n in range(count):
            await link.send("much", b"%03d" % n + body)
            sent += 1

    server.reads.clear()
    sending = asyncio.create_task(send_all())
    before = -1
    while before != sent:
        before = sent
        await asyncio.sleep(0.2)
    assert sent < count, "somebody must wait"
    assert link.client.pending_data_size < 4_000_000
    with pytest.raises(NoAnswer):
        await link.request("verb", b"", timeout_s=SHORT_S)

    server.reads.set()
    await sending
    received = [(await server.published.get()).body[:3] for _ in range(count)]
    received = [number for number in received if number]
    assert received == [b"%03d" % n for n in range(len(received))]
    assert link.mux.outstanding == 0


@pytest.mark.parametrize("way", ["thin"], indirect=True)
async def test_a_server_that_takes_nothing_any_more_is_away(
    link: NatsLink, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thin_client, "ROOM_S", SHORT_S)
    server.reads.clear()

    async def send_for_ever() -> None:
        while True:
            await link.send("much", b"x" * 500_000)

    with pytest.raises(LogUnavailable):
        await send_for_ever()
    assert link.client.pending_data_size < 4_000_000
    server.reads.set()


@pytest.mark.parametrize("way", ["thin"], indirect=True)
async def test_thousands_of_requests_time_out_on_their_own(
    link: NatsLink, server: ScriptedServer
) -> None:
    server.keeps = False
    await link.send("deaf", b"")

    async def lose(n: int) -> bool:
        try:
            await link.request("verb", b"x" * 500, timeout_s=0.1 + n % 20 / 100)
        except NoAnswer:
            return True
        return False

    # More than the buffer of the connection holds: some wait for room meanwhile.
    assert all(await asyncio.gather(*(lose(n) for n in range(5_000))))
    assert link.mux.outstanding == 0


async def test_requests_that_wait_fail_when_the_connection_is_closed(
    link: NatsLink, server: ScriptedServer
) -> None:
    asking = ask(link, timeout_s=HANG_S * 10)
    await server.published.get()
    await link.close()

    with pytest.raises(LogUnavailable):
        await asking
    with pytest.raises(LogUnavailable):
        await ask(link)
    with pytest.raises(LogUnavailable):
        await link.send("verb", b"")


async def test_a_handler_that_fails_loses_its_message_only(
    link: NatsLink, server: ScriptedServer
) -> None:
    """An error inside the reader of nats-py would end it, and the process would hear nothing more."""
    heard: list[bytes] = []

    def receive(message: InboundMessage) -> None:
        if message.data == b"bad":
            raise ValueError(message.data)
        heard.append(message.data)

    await link.listen("news", receive)
    await link.send("ready", b"")
    await server.published.get()
    for body in (b"one", b"bad", b"two"):
        await server.answer("news", body)
    while len(heard) < 2:
        await asyncio.sleep(0.01)

    assert heard == [b"one", b"two"]


async def test_what_is_not_taken_at_once_waits_in_order(
    link: NatsLink, server: ScriptedServer
) -> None:
    heard: list[bytes] = []

    async def take_later(message: InboundMessage) -> None:
        await asyncio.sleep(0)
        heard.append(message.data)

    client = link.client
    subscription = await client.subscribe_directly(
        "news", lambda _message: False, take_later=take_later
    )
    await link.send("ready", b"")
    await server.published.get()
    for body in (b"1", b"2", b"3"):
        await server.answer("news", body)
    await subscription.drain()  # type: ignore[no-untyped-call]

    assert heard == [b"1", b"2", b"3"]
    assert not client._takers.keys() & {subscription._id}  # noqa: SLF001


async def test_a_drained_subscription_handles_what_was_on_its_way(
    link: NatsLink, server: ScriptedServer
) -> None:
    heard: list[bytes] = []
    subscription = await link.listen("news", lambda message: heard.append(message.data))
    await link.send("ready", b"")
    await server.published.get()
    await server.answer("news", b"on its way")
    await subscription.drain()  # type: ignore[no-untyped-call]

    assert heard == [b"on its way"]


async def test_the_inside_of_nats_py_is_as_the_thin_path_needs_it(server: ScriptedServer) -> None:
    """A new release of nats-py: read `thin_client.py` beside it, then change the version here."""
    assert version("nats-py") == "2.16.0"
    client = await open_client(server.address, name="test")

    assert find_changes(client) is None
    assert client.is_thin
    await client.close()


@pytest.mark.parametrize("field", ["_pending", "_flush_queue", "_flusher_task", "_status"])
async def test_a_change_inside_nats_py_is_named(server: ScriptedServer, field: str) -> None:
    client = await open_client(server.address, name="test")
    kept = getattr(client, field)
    setattr(client, field, None)

    assert find_changes(client) == field
    setattr(client, field, kept)
    await client.close()


@pytest.mark.parametrize("way", ["ordinary"], indirect=True)
async def test_without_the_thin_path_an_operator_is_told(
    way: str, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        client = await open_client(server.address, name="test")
    await client.close()

    assert way == "ordinary"
    (record,) = caplog.records
    assert "ordinary path" in record.message
    assert record.__dict__["changed"] == "_pending"
