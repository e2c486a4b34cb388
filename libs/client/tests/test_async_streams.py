"""Streams that break in every place: each event comes once and in order, and errors help."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_client import (
    AsyncFairlead,
    MalformedAnswer,
    ReceivedEvent,
    ServerAway,
    UnknownRefusal,
)
from fairlead_schema.errors import (
    CursorExpired,
    Refused,
    ServiceUnavailable,
    SessionNotFound,
    SessionUnreadable,
    Unauthorized,
    WireError,
)
from libs.client.tests.conftest import (
    ScriptedGateway,
    event,
    failure,
    fragment,
    refuse,
    reply,
    scripted_gateway,
    stream,
)

STREAM = "/api/session/ses_a/stream"
EVENT = "/api/session/ses_a/event"
CAUGHT_UP = b": caught-up\n\n"


async def take(
    fairlead: AsyncFairlead, count: int, *, after: int | None = 0
) -> list[ReceivedEvent]:
    """So many events of a stream."""
    taken: list[ReceivedEvent] = []
    async with aclosing(fairlead.follow("ses_a", after=after)) as events:
        async for received in events:
            taken.append(received)
            if len(taken) == count:
                break
    return taken


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 5_000), min_size=1, max_size=3))
async def test_a_stream_that_breaks_anywhere_loses_and_repeats_nothing(cuts: list[int]) -> None:
    """H-30, P-32: every connection after the first one may send again what the client has."""
    whole = [event(seq) for seq in (1, 2, 4, 5, 9, 10)]
    answer = stream(*whole)
    async with scripted_gateway() as gateway:
        gateway.script(STREAM, *(answer[: cut % len(answer)] for cut in cuts), answer)
        async with AsyncFairlead(gateway.url) as fairlead:
            taken = await take(fairlead, 6)

        assert [received.seq for received in taken] == [1, 2, 4, 5, 9, 10]
        for asked in gateway.asked[1:]:
            assert "after=" in asked.query


async def test_a_new_connection_names_the_place_and_the_log(gateway: ScriptedGateway) -> None:
    gateway.script(STREAM, stream(event(7)), stream(event(7), event(8)))
    async with AsyncFairlead(gateway.url) as fairlead:
        taken = await take(fairlead, 2, after=6)

    assert [received.seq for received in taken] == [7, 8]
    assert [asked.query for asked in gateway.asked] == ["after=6", "after=7&log=log_1"]


async def test_fragments_are_not_handed_out_twice(gateway: ScriptedGateway) -> None:
    gateway.script(
        STREAM,
        stream(fragment("Hel", 0)),
        stream(fragment("Hello w", 0), fragment("orld", 4), event(3)),
    )
    async with AsyncFairlead(gateway.url) as fairlead:
        taken = await take(fairlead, 4)

    assert "".join(received.data["delta"] for received in taken[:3]) == "Hello world"


async def test_a_token_that_expires_in_mid_stream_is_renewed(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    """The gateway ends the stream with a frame, and may refuse the old token for a while."""
    file, expired = tmp_path / "token", Unauthorized("The credentials expired")
    file.write_text("first")
    gateway.script(
        STREAM, stream(event(1), failure(expired)), refuse(expired), stream(event(2)), b""
    )
    async with AsyncFairlead(gateway.url, token=file) as fairlead:
        taken: list[int | None] = []
        async with aclosing(fairlead.follow("ses_a")) as events:
            async for received in events:
                taken.append(received.seq)
                file.write_text("second")
                if received.seq == 2:
                    break

    assert taken == [1, 2]
    sent = [asked.headers["authorization"] for asked in gateway.asked]
    assert sent[0] == "bearer first"
    assert set(sent[1:]) == {"bearer second"}


async def test_a_token_that_nobody_renews_ends_the_stream(gateway: ScriptedGateway) -> None:
    expired = Unauthorized("The credentials expired")
    gateway.script(STREAM, stream(event(1), failure(expired)), refuse(expired))
    async with AsyncFairlead(gateway.url, token="k", patience_s=0.3) as fairlead:  # noqa: S106
        with pytest.raises(Unauthorized):
            await take(fairlead, 2)


async def test_a_token_that_expired_while_the_server_was_away_for_long_is_renewed(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    """The time without a server is no time with a bad token."""
    file, expired = tmp_path / "token", refuse(Unauthorized("The credentials expired"))
    file.write_text("first")
    away = [refuse(ServiceUnavailable("NATS is away", service="nats"))] * 4
    gateway.script(STREAM, stream(event(1)), *away, expired, stream(event(2)), b"")
    async with (
        AsyncFairlead(gateway.url, token=file, patience_s=0.3) as fairlead,
        aclosing(fairlead.follow("ses_a")) as events,
    ):
        first = await anext(events)
        file.write_text("second")
        second = await anext(events)

    assert (first.seq, second.seq) == (1, 2)


@pytest.mark.parametrize(
    "refusal",
    [
        SessionNotFound("ses_a"),
        CursorExpired("The log was restored from a backup"),
        SessionUnreadable(5, "a newer release wrote it"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_what_cannot_be_followed_any_further_is_raised(
    gateway: ScriptedGateway, refusal: Refused, *, at_once: bool
) -> None:
    """A session that is deleted while it is followed, and a log that was restored."""
    last = refuse(refusal) if at_once else stream(event(2), failure(refusal))
    gateway.script(STREAM, stream(event(1)), last)
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(Refused) as raised:
            await take(fairlead, 9)

    assert raised.value.body == refusal.body


async def test_a_server_that_is_busy_for_a_while_is_followed_on(gateway: ScriptedGateway) -> None:
    away = ServiceUnavailable("NATS is away", service="nats")
    gateway.script(
        STREAM, stream(event(1), failure(away)), refuse(away), stream(event(2)), stream()
    )
    async with AsyncFairlead(gateway.url, patience_s=0.0) as fairlead:
        taken = await take(fairlead, 2)

    assert [received.seq for received in taken] == [1, 2]


async def test_a_server_that_was_never_there_is_given_up() -> None:
    async with AsyncFairlead("http://127.0.0.1:9", patience_s=0.2) as fairlead:
        with pytest.raises(ServerAway):
            await take(fairlead, 1)


async def test_an_event_in_broken_utf_8_names_its_place(gateway: ScriptedGateway) -> None:
    """It is not skipped: the caller decides to read on after it."""
    broken = b'id: 2\ndata: {"id":"evt_2","type":"x","data":{"text":"\xff"}}\n\n'
    gateway.script(STREAM, stream(event(1), broken, event(3)))
    async with AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(MalformedAnswer) as raised:
            await take(fairlead, 3)

    assert raised.value.seq == 2


async def test_a_long_event_is_read_whole(gateway: ScriptedGateway) -> None:
    """The stream shows a part of an event of more than a mebibyte, and says where the whole is."""
    history = "/api/session/ses_a/history"
    partial = json.loads(event(4, text="lo…").partition(b"data: ")[2])
    partial["metadata"] = {"partial": {"bytes": 9, "href": f"{history}?after=3&limit=1"}}
    whole = json.loads(event(4, text="long text").partition(b"data: ")[2])
    gateway.script(STREAM, stream(f"id: 4\ndata: {json.dumps(partial)}\n\n".encode()))
    gateway.script(history, b"", reply({"data": [whole], "hasMore": False}))
    async with AsyncFairlead(gateway.url) as fairlead:
        (received,) = await take(fairlead, 1, after=3)

    assert received.data["text"] == "long text"


async def test_events_end_where_the_log_ends(gateway: ScriptedGateway) -> None:
    """H-30, P-32: also if the connection breaks before that."""
    gateway.script(EVENT, stream(event(1), event(2)), stream(event(3), CAUGHT_UP, event(4)))
    async with AsyncFairlead(gateway.url) as fairlead:
        taken = [received.seq async for received in fairlead.events("ses_a")]

    assert taken == [1, 2, 3]


async def test_a_session_that_is_erased_while_it_is_followed_ends_the_stream(
    gateway: ScriptedGateway,
) -> None:
    """The last word of a session is the last event: nothing follows on an open connection."""
    gateway.script(STREAM, stream(event(1), event(2, "session.purged"), b": heartbeat\n\n"))
    async with AsyncFairlead(gateway.url) as fairlead:
        assert [received.seq for received in await take(fairlead, 2)] == [1, 2]
        with pytest.raises(SessionNotFound):
            await take(fairlead, 3)

    assert len(gateway.asked) == 2, "nobody opens the stream of an erased session again"


async def test_a_session_that_is_erased_while_it_is_read_ends_the_reading(
    gateway: ScriptedGateway,
) -> None:
    """The server says nothing more on an open connection, so nobody would catch up."""
    gateway.script(EVENT, stream(event(1), event(2, "session.purged"), b": heartbeat\n\n"))
    async with AsyncFairlead(gateway.url) as fairlead:
        events = fairlead.events("ses_a")
        assert [(await anext(events)).seq for _ in range(2)] == [1, 2]
        with pytest.raises(SessionNotFound):
            await anext(events)

    assert len(gateway.asked) == 1


async def test_a_token_file_that_is_empty_for_a_moment_does_not_end_the_stream(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    """Whoever renews the file may empty it first. The stream waits for the token, within the patience."""
    file, expired = tmp_path / "token", Unauthorized("The credentials expired")
    file.write_text("first")
    gateway.script(STREAM, stream(event(1), failure(expired)), stream(event(2)), b"")
    async with AsyncFairlead(gateway.url, token=file) as fairlead:
        taken: list[int | None] = []
        async with aclosing(fairlead.follow("ses_a")) as events:
            async for received in events:
                taken.append(received.seq)
                if received.seq == 2:
                    break
                file.write_text("")
                asyncio.get_running_loop().call_later(0.3, file.write_text, "second")

    assert taken == [1, 2]
    assert gateway.asked[-1].headers["authorization"] == "bearer second"


async def test_a_stream_that_fails_in_words_of_a_newer_server_ends(
    gateway: ScriptedGateway,
) -> None:
    newer = Refused("The moon is full")
    newer.body = WireError(tag="MoonError", message="The moon is full")
    gateway.script(STREAM, stream(event(1), failure(newer)))
    async with asyncio.timeout(20), AsyncFairlead(gateway.url) as fairlead:
        with pytest.raises(UnknownRefusal, match="MoonError"):
            await take(fairlead, 2)


async def test_a_program_that_follows_many_sessions_sends_commands_too() -> None:
    """Streams stay open. They must not use up the connections of the client."""
    held, serving = asyncio.Event(), set[asyncio.Task[Any] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if "/stream" in head:
            writer.write(stream(event(1)))
            await held.wait()
        else:
            writer.write(reply({"data": []}))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(20), AsyncFairlead(url, patience_s=None) as fairlead:
        streams = [fairlead.follow(f"ses_{number}") for number in range(120)]
        await asyncio.gather(*(anext(events) for events in streams))
        assert await fairlead.pending("ses_1") == []
        await asyncio.gather(*(events.aclose() for events in streams))
    held.set()
    server.close()
    await asyncio.gather(*(task for task in serving if task is not None))
