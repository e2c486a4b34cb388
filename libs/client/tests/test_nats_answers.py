"""Answers over NATS that are not what this release expects: a typed error, and nothing lost before it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairlead_client import MalformedAnswer
from fairlead_schema.errors import InvalidRequest, LimitReached, PayloadTooLarge, SessionIsStored
from fairlead_schema.identity.nats_address import CLIENT_PAYLOAD_BYTES_MAX
from fairlead_testing.nats import Server
from libs.client.tests.test_nats_client import (
    ScriptedIngest,
    connect,
    durable,
    ingest,
    seed,
    server,
)

__all__ = ["ingest", "seed", "server"]
pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]


def page(*events: object, **more: object) -> dict[str, Any]:
    return {"data": {"events": events, "seq": 9, "hasMore": False, **more}}


async def test_events_and_fields_of_a_newer_server_are_handed_out_as_they_are(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    newer = {**durable(1), "type": "session.next.moon.rose", "phase": "full"}
    ingest.answers["session.history"] = page(newer, moon=True)
    async with connect(server, seed) as fairlead:
        (received,) = [event async for event in fairlead.events("ses_a")]

    assert (received.type, received.seq) == ("moon.rose", 1)
    assert received.to_model() is None


@pytest.mark.parametrize(
    "broken",
    [
        {"durable": {"seq": 2}},
        {**durable(2), "data": "text"},
        {**durable(2), "type": None},
    ],
)
async def test_an_event_that_cannot_be_read_ends_the_reading_behind_those_before_it(
    server: Server, seed: Path, ingest: ScriptedIngest, broken: object
) -> None:
    """As over HTTP: it is not skipped, and the caller decides to read on after it."""
    ingest.answers["session.history"] = page(durable(1), broken, durable(3))
    async with connect(server, seed) as fairlead:
        for events in (fairlead.events("ses_a"), fairlead.follow("ses_a", after=0)):
            assert (await anext(events)).seq == 1
            with pytest.raises(MalformedAnswer) as raised:
                await anext(events)
            assert raised.value.seq == 2


@pytest.mark.parametrize(
    "answer", [{}, {"data": None}, {"data": {"events": 7}}, {"error": {"x": 1}}]
)
async def test_an_answer_of_another_form_is_a_typed_error(
    server: Server, seed: Path, ingest: ScriptedIngest, answer: object
) -> None:
    for verb in ("session.history", "session.pending", "session.get"):
        ingest.answers[verb] = answer
    async with connect(server, seed) as fairlead:
        with pytest.raises(MalformedAnswer):
            await anext(fairlead.events("ses_a"))
        with pytest.raises(MalformedAnswer):
            await fairlead.pending("ses_a")
        with pytest.raises(MalformedAnswer):
            await fairlead.get("ses_a")


async def test_a_command_that_no_message_can_carry_is_refused_and_the_connection_stays(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    """NATS would end the connection, with every stream on it."""
    ingest.answers["session.pending"] = {"data": {"inputs": []}}
    async with connect(server, seed) as fairlead:
        with pytest.raises(PayloadTooLarge, match="upload files over HTTP"):
            await fairlead.prompt("ses_a", "Hi", files=["x" * CLIENT_PAYLOAD_BYTES_MAX])
        with pytest.raises(InvalidRequest, match="cannot be sent"):
            await fairlead.prompt("ses_a", "Hi", system="caf\udce9")
        assert await fairlead.pending("ses_a") == []

    assert "session.prompt" not in ingest.asked


async def test_a_session_that_is_stored_while_it_is_followed_ends_the_stream(
    server: Server, seed: Path, ingest: ScriptedIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed does not say it. The next look at the log does."""
    monkeypatch.setattr("fairlead_client.async_client.nats_transport.LOOK_S", 0.1)
    await ingest.write(1)
    async with connect(server, seed) as fairlead:
        events = fairlead.follow("ses_a", after=0)
        assert (await anext(events)).seq == 1
        stored = SessionIsStored("ses_a", "ses_a.fairlead.jsonl")
        ingest.answers["session.history"] = {"error": stored.body.wire()}
        with pytest.raises(SessionIsStored, match="fairlead cold restore ses_a"):
            await anext(events)


async def test_a_page_that_takes_long_is_waited_for_longer_each_time(
    server: Server, seed: Path, ingest: ScriptedIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy ingest would else answer every page of a follower too late, for ever."""
    monkeypatch.setattr("fairlead_client.async_client.nats_transport.ANSWER_S", 0.1)
    ingest.pause_s = 0.3
    await ingest.write(1)
    async with asyncio.timeout(20), connect(server, seed) as fairlead:
        assert (await anext(fairlead.follow("ses_a", after=0))).seq == 1

    assert len(ingest.asked) > 1


async def test_more_streams_than_a_connection_may_have_are_refused_and_the_others_go_on(
    server: Server, seed: Path, ingest: ScriptedIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NATS would end the connection, with every stream on it."""
    monkeypatch.setattr("fairlead_client.async_client.nats_connection.CLIENT_SUBSCRIPTIONS_MAX", 6)
    await ingest.write(1)
    async with connect(server, seed, patience_s=0.1) as fairlead:
        streams = [fairlead.follow("ses_a", after=0) for _ in range(2)]
        assert [(await anext(events)).seq for events in streams] == [1, 1]
        with pytest.raises(LimitReached, match="another client"):
            await anext(fairlead.follow("ses_a", after=0))
        await ingest.write(2)
        assert [(await anext(events)).seq for events in streams] == [2, 2]
        await streams[0].aclose()
        assert (await anext(fairlead.follow("ses_a", after=1))).seq == 2
