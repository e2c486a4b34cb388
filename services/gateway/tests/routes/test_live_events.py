"""`GET /api/event`: the live stream over all sessions of a tenant (Q-11)."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.tenant_broadcasts import MemoryTenantBroadcasts
from fairlead_gateway.live import hub_life, session_locations, tenant_hub
from fairlead_gateway.runtime import Runtime
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import (
    ExecutionClaimed,
    ExecutionReleased,
    PermissionAsked,
    SessionEvent,
    SessionMoved,
    SyntheticAdded,
)
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import PermissionRequest
from fairlead_schema.record import Draft, ImportMark, encode_import
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, Listen, Project

LIVE = "/api/event"
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
DELTA = TextDelta(assistant_message_id="msg_a", text_id="t", delta="Hel")


def _note(text: str) -> SyntheticAdded:
    return SyntheticAdded(message_id="msg_1", text=text)


async def _next(chunks: "asyncio.Queue[bytes]") -> dict[str, Any]:
    frame = await asyncio.wait_for(chunks.get(), 5)
    # A frame without an id: the cursor of one session means nothing for the others.
    assert frame.startswith(b"data: "), frame
    event: dict[str, Any] = json.loads(frame.removeprefix(b"data: "))
    return event


async def test_a_client_is_told_when_it_misses_nothing_more(
    append: Append, listen: Listen, eventlog: EventLog
) -> None:
    """The first frame comes behind the subscription; what was before it is never replayed."""
    await append("ses_1", _note("before"))

    async with listen(LIVE) as chunks:
        connected = await _next(chunks)
        await append("ses_1", _note("one"), CLAIMED)
        await append("ses_2", _note("two"))
        await eventlog.deltas.send(Address(DEFAULT_TENANT, "ses_2"), DELTA)
        got = [await _next(chunks) for _ in range(4)]

    assert (connected["type"], connected["data"]) == ("server.connected", {})
    assert [(event["type"], event["data"]["sessionID"]) for event in got] == [
        ("session.next.synthetic", "ses_1"),
        ("session.created", "ses_2"),
        ("session.next.synthetic", "ses_2"),
        ("session.next.text.delta", "ses_2"),
    ]
    assert got[0]["durable"] == {"aggregateID": "ses_1", "seq": 3, "version": 1}
    assert "durable" not in got[3]


async def test_a_live_stream_shows_asks(append: Append, listen: Listen) -> None:
    request = PermissionRequest(id="per_1", session_id="ses_1", action="bash", resources=("ls",))
    asked: SessionEvent = PermissionAsked(request=request, agent="build")
    await append("ses_1")

    async with listen(LIVE) as chunks:
        await _next(chunks)
        await append("ses_1", asked)
        event = await _next(chunks)

    assert event["type"] == "permission.v2.asked"
    assert (event["data"]["id"], event["data"]["resources"]) == ("per_1", ["ls"])
    assert "agent" not in event["data"]


async def test_nobody_sees_the_sessions_of_another_tenant(
    append: Append, listen: Listen, eventlog: EventLog
) -> None:
    foreign = Address("other", "ses_1")

    async with listen(LIVE) as chunks:
        await _next(chunks)
        head = await eventlog.log.head(foreign)
        await eventlog.log.append(
            foreign, "cmt_x", (Draft("evt_x", 1, _note("secret")),), after=head
        )
        await eventlog.deltas.send(foreign, DELTA)
        await append("ses_2", _note("own"))
        events = [await _next(chunks), await _next(chunks)]

    assert {event["data"]["sessionID"] for event in events} == {"ses_2"}


async def test_an_import_is_no_news(append: Append, listen: Listen, eventlog: EventLog) -> None:
    at = Address(DEFAULT_TENANT, "ses_9")
    event = {"id": "evt_1", "seq": 1, "type": "synthetic", "version": 1, "time": 1}
    event["data"] = {"messageID": "msg_1", "text": "long ago"}

    async with listen(LIVE) as chunks:
        await _next(chunks)
        payload = encode_import("cmt_1", [event], ImportMark(1, publish=False))
        await eventlog.log.append_raw(at, payload)  # type: ignore[attr-defined]
        await append("ses_2", _note("news"))
        first = await _next(chunks)

    assert first["data"]["sessionID"] == "ses_2"


async def test_q11_a_gateway_that_stops_says_so_in_its_last_frame(
    listen: Listen, runtime: Runtime, append: Append
) -> None:
    """Q-11: the client connects to another gateway; its sessions go on."""
    async with listen(LIVE) as chunks:
        await _next(chunks)
        await append("ses_1")
        await _next(chunks)
        runtime.shutdown.set()
        last = await _next(chunks)

    assert (last["type"], last["data"]) == ("global.disposed", {})


async def test_a_stream_that_may_have_missed_events_ends(
    listen: Listen, eventlog: EventLog, runtime: Runtime
) -> None:
    """After a reconnection nobody knows what was lost: the client reads again and subscribes anew."""
    broadcasts = eventlog.tenant_broadcasts
    assert isinstance(broadcasts, MemoryTenantBroadcasts)

    async with listen(LIVE) as chunks:
        await _next(chunks)
        broadcasts.lose(DEFAULT_TENANT)
        failure = await asyncio.wait_for(chunks.get(), 5)

    assert failure.startswith(b"event: effect/httpapi/stream/failure\n")
    assert tenant_hub.MISSED.encode() in failure
    async with listen(LIVE) as chunks:
        assert (await _next(chunks))["type"] == "server.connected"
    assert len(runtime.tenant_hubs) == len(broadcasts.listeners[DEFAULT_TENANT]) == 0


async def test_too_many_events_end_the_stream_and_not_the_gateway(
    listen: Listen, eventlog: EventLog, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_life, "WAITING_MAX", 4)
    at = Address(DEFAULT_TENANT, "ses_1")

    async with listen(LIVE) as chunks:
        await _next(chunks)
        for _ in range(10):
            eventlog.deltas.announce(at, DELTA)  # type: ignore[attr-defined]
        frames = [await asyncio.wait_for(chunks.get(), 5)]
        while not frames[-1].startswith(b"event: "):
            frames.append(await asyncio.wait_for(chunks.get(), 5))

    assert len(frames) <= 5
    async with listen(LIVE) as chunks:
        await _next(chunks)
        await append("ses_1")
        assert (await _next(chunks))["type"] == "session.created"


async def test_clients_of_a_tenant_share_one_subscription(
    listen: Listen, eventlog: EventLog, runtime: Runtime, append: Append
) -> None:
    broadcasts = eventlog.tenant_broadcasts
    assert isinstance(broadcasts, MemoryTenantBroadcasts)

    async with listen(LIVE) as one, listen(LIVE) as other:
        await _next(one)
        await _next(other)
        assert len(broadcasts.listeners[DEFAULT_TENANT]) == 1
        await append("ses_1")
        assert await _next(one) == await _next(other)

    assert len(runtime.tenant_hubs) == len(broadcasts.listeners[DEFAULT_TENANT]) == 0


async def test_live_streams_are_bounded(client: httpx.AsyncClient, runtime: Runtime) -> None:
    held = [runtime.limits.open_stream("local") for _ in range(256)]
    for stream in held:
        stream.__enter__()

    refused = await client.get(LIVE)

    assert (refused.status_code, refused.json()["_tag"]) == (429, "TooManyError")


async def test_a_live_event_says_where_it_happened(
    append: Append, listen: Listen, project: Project, eventlog: EventLog
) -> None:
    """H-11: from the beginning of a session, from its moves, else from the read model."""
    await append("ses_old")
    project("ses_old", seq=1, location=LocationRef(directory="/old"))
    moved = SessionMoved(location=LocationRef(directory="/there", workspace_id="wrk_1"))

    async with listen(LIVE) as chunks:
        connected = await _next(chunks)
        await append("ses_old", _note("one"))
        await append("ses_old", moved)
        await eventlog.deltas.send(Address(DEFAULT_TENANT, "ses_old"), DELTA)
        await append("ses_new", _note("two"))
        got = [await _next(chunks) for _ in range(5)]

    there = {"directory": "/there", "workspaceID": "wrk_1"}
    assert "location" not in connected
    assert [event["location"] for event in got] == [
        {"directory": "/old"},
        there,
        there,
        {"directory": "/work"},
        {"directory": "/work"},
    ]


async def test_a_read_model_that_is_behind_or_away_names_no_location_and_stops_nothing(
    append: Append, listen: Listen, project: Project, read: MemoryReadModel
) -> None:
    """H-11: a location that may be old is not told."""
    for session in ("ses_1", "ses_2"):
        await append(session, _note("before"))
        project(session, seq=1)

    async with listen(LIVE) as chunks:
        await _next(chunks)
        await append("ses_1", _note("one"))
        behind = await _next(chunks)
        project("ses_1", seq=3)
        project("ses_2", seq=2)
        await append("ses_1", _note("two"))
        caught_up = await _next(chunks)
        read.unavailable = "away"
        await append("ses_2", _note("three"))
        away = await _next(chunks)

    assert "location" not in behind
    assert caught_up["location"] == {"directory": "/work"}
    assert "location" not in away


async def test_a_read_model_that_stands_still_is_asked_once_and_not_waited_for(
    append: Append, listen: Listen, monkeypatch: pytest.MonkeyPatch, read: MemoryReadModel
) -> None:
    looks = 0

    async def stand_still(_at: Address) -> None:
        nonlocal looks
        looks += 1
        await asyncio.Event().wait()

    monkeypatch.setattr(read, "progress", stand_still)
    monkeypatch.setattr(session_locations, "LOOK_UP_S", 0.01)
    for session in ("ses_1", "ses_2"):
        await append(session)

    async with listen(LIVE) as chunks:
        await _next(chunks)
        for session in ("ses_1", "ses_2"):
            await append(session, _note("on it goes"))
        got = [await _next(chunks) for _ in range(2)]

    assert [event["data"]["sessionID"] for event in got] == ["ses_1", "ses_2"]
    assert looks == 1


async def test_a_client_may_leave_fragments_out_and_learn_who_runs(
    append: Append, listen: Listen, eventlog: EventLog
) -> None:
    """A page that shows many sessions needs no text of them, but every change of their states."""
    released = ExecutionReleased(generation=1, reason="retry-later", detail="busy", wake_at=9)
    async with (
        listen(LIVE, "fragments=false&status=true") as page,
        listen(LIVE) as other,
    ):
        assert (await _next(page))["type"] == (await _next(other))["type"] == "server.connected"
        await append("ses_1", _note("one"), CLAIMED)
        await eventlog.deltas.send(Address(DEFAULT_TENANT, "ses_1"), DELTA)
        await append("ses_1", released)
        await append("ses_1", _note("two"))
        seen = [await _next(page) for _ in range(6)]
        others = [await _next(other) for _ in range(5)]

    status = [event["data"] for event in seen if event["type"] == "session.status"]
    assert [event["type"] for event in seen] == [
        "session.created",
        "session.next.synthetic",
        "session.status",
        "execution.released",
        "session.status",
        "session.next.synthetic",
    ]
    assert (status[0]["state"], status[0]["seq"]) == ("running", 3)
    assert (status[1]["state"], status[1]["reason"], status[1]["wakeAt"]) == (
        "rested",
        "retry-later",
        9,
    )
    assert [event["type"] for event in others] == [
        "session.created",
        "session.next.synthetic",
        "session.next.text.delta",
        "execution.released",
        "session.next.synthetic",
    ]
