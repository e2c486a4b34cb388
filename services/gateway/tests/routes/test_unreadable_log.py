"""A log with an unreadable place: what comes before it is shown, with the place, and others work."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_gateway.runtime import Runtime
from fairlead_schema.events import PromptAdmitted, SessionArchived, SessionPurged, SyntheticAdded
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, Listen, Project

Plant: TypeAlias = Callable[[bytes], Awaitable[None]]

AT = "/api/session/ses_1"
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="steer")
FUTURE = (
    b'{"id":"cmt_x","events":[{"id":"evt_x","seq":%d,"type":"from.the.future","version":9,'
    b'"time":1,"data":{}}]}'
)


def _note(index: int) -> SyntheticAdded:
    return SyntheticAdded(message_id=f"msg_n{index}", text=f"note {index}")


def _forged(*seqs: int) -> bytes:
    """A commit with events that read well, in places of their own choice."""
    events = (record((Draft(f"evt_f{seq}", 1, _note(seq)),), after=seq - 1)[0] for seq in seqs)
    return encode(Commit(f"cmt_f{seqs[0]}", tuple(events)))


@pytest.fixture
def plant(eventlog: EventLog) -> Plant:
    """Stores bytes in the log of the session, as a newer or a broken writer would."""

    async def _plant(payload: bytes) -> None:
        assert isinstance(eventlog.log, MemoryLog)
        await eventlog.log.append_raw(Address(DEFAULT_TENANT, "ses_1"), payload)

    return _plant


@pytest.fixture
async def broken_sessions(append: Append, plant: Plant) -> None:
    """A session whose third event comes from the future."""
    await append("ses_1", ADMITTED)
    await plant(FUTURE % 3)


async def _read_stream(listen: Listen, path: str, query: str = "") -> bytes:
    """Everything that a stream sends until it says why it ends."""
    received = b""
    async with listen(AT + path, query) as frames, asyncio.timeout(5):
        while b"stream/failure" not in received:
            received += await frames.get()
    return received


@pytest.mark.usefixtures("broken_sessions")
@pytest.mark.parametrize("path", ["", "/message", "/history", "/context", "/todo"])
async def test_what_comes_before_is_shown_with_the_place_that_cannot_be_read(
    client: httpx.AsyncClient, path: str
) -> None:
    """D7, H-19: a typed place with its reason, instead of an error that hides all of it."""
    answer = await client.get(AT + path)

    assert answer.status_code == httpx.codes.OK, answer.text
    assert answer.json()["unreadable"]["seq"] == 3
    assert "from.the.future" in answer.json()["unreadable"]["reason"]


@pytest.mark.usefixtures("broken_sessions")
async def test_a_session_that_is_not_projected_is_shown_as_the_log_tells_it(
    client: httpx.AsyncClient,
) -> None:
    """D7: of a log whose beginning cannot be read there is nothing to show."""
    answer = await client.get(AT)

    assert answer.json()["data"]["title"] == "t"
    assert answer.headers["fairlead-stale"] == "true"


async def test_a_log_whose_beginning_cannot_be_read_shows_nothing(
    client: httpx.AsyncClient, plant: Plant
) -> None:
    """D7."""
    await plant(b"rubbish")

    history = await client.get(f"{AT}/history")

    assert (history.json()["data"], history.json()["unreadable"]["seq"]) == ([], 1)
    assert (await client.get(AT)).status_code == httpx.codes.SERVICE_UNAVAILABLE


async def _history(
    client: httpx.AsyncClient, after: int = 0, limit: int = 50
) -> tuple[list[int], bool, int | None]:
    answer = await client.get(f"{AT}/history", params={"after": after, "limit": limit})
    body = answer.json()
    seqs = [event["durable"]["seq"] for event in body["data"]]
    return seqs, body["hasMore"], body.get("unreadable", {}).get("seq")


async def test_history_reaches_the_place_page_by_page(
    client: httpx.AsyncClient, append: Append, plant: Plant
) -> None:
    """D7: a page names the place only if it ends there."""
    await append("ses_1", ADMITTED, *(_note(index) for index in range(3)))
    await plant(FUTURE % 6)

    assert await _history(client, 0, 2) == ([2, 3], True, None)
    assert await _history(client, 3, 2) == ([4, 5], False, 6)
    assert await _history(client, 5, 2) == ([], False, 6)
    assert await _history(client, 100, 2) == ([], False, 6)


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param((_forged(7),), id="gap"),
        pytest.param((_forged(3, 5),), id="gap inside a commit"),
        pytest.param((_forged(2),), id="a used place"),
        pytest.param((_forged(7), _forged(8)), id="more behind a gap"),
    ],
)
@pytest.mark.parametrize("path", ["/event", "/stream"])
async def test_no_event_behind_a_gap_is_ever_shown(
    client: httpx.AsyncClient,
    append: Append,
    plant: Plant,
    listen: Listen,
    forged: tuple[bytes, ...],
    path: str,
) -> None:
    """D7: not in history and not in a stream, although each commit reads well."""
    await append("ses_1", ADMITTED)
    for payload in forged:
        await plant(payload)

    assert await _history(client) == ([2], False, 3)
    received = await _read_stream(listen, path)
    assert received.count(b"prompt.admitted") == 1
    assert b"note" not in received
    assert b'"seq":3' in received


async def test_a_cursor_behind_the_gap_shows_nothing_once_the_projector_has_met_it(
    client: httpx.AsyncClient, append: Append, plant: Plant, project: Project, listen: Listen
) -> None:
    """D7: the projector read the log from its beginning, so that it knows."""
    await append("ses_1", ADMITTED)
    for seq in (7, 8, 9):
        await plant(_forged(seq))
    project("ses_1", seq=2).broken = "expected event 3, found 7"

    assert await _history(client, after=7) == ([], False, 3)
    assert b"note" not in await _read_stream(listen, "/event", "after=8")
    answer = await client.get(AT)
    assert answer.json()["unreadable"] == {"seq": 3, "reason": "expected event 3, found 7"}


@pytest.mark.parametrize("path", ["/event", "/stream"])
async def test_a_stream_tells_all_before_it_and_then_why_it_ends(
    append: Append, plant: Plant, listen: Listen, path: str
) -> None:
    """What follows it can be read as a commit, but not as a part of this session."""
    await append("ses_1", ADMITTED)
    await plant(FUTURE % 3)
    await plant(_forged(4))

    received = await _read_stream(listen, path, "after=0")

    assert b"prompt.admitted" in received
    assert b"note 4" not in received
    assert b"from.the.future" in received
    assert b'"service":"session.log","seq":3' in received


@pytest.mark.parametrize("payload", [FUTURE % 3, _forged(9), b"rubbish"])
async def test_clients_that_follow_learn_where_the_log_stops(
    append: Append, plant: Plant, listen: Listen, runtime: Runtime, payload: bytes
) -> None:
    """D7: the place is met by the hub, and each of its clients is told."""
    await append("ses_1", ADMITTED)

    async with listen(f"{AT}/event") as first, listen(f"{AT}/stream") as second:
        async with asyncio.timeout(5):
            for frames in (first, second):
                while await frames.get() != b": caught-up\n\n":
                    pass
            await plant(payload)
            for frames in (first, second):
                failure = await frames.get()
                assert failure.startswith(b"event: effect/httpapi/stream/failure")
                assert b'"seq":3' in failure
    assert len(runtime.hubs) == 0


@pytest.mark.usefixtures("broken_sessions")
async def test_nobody_waits_for_it(client: httpx.AsyncClient) -> None:
    answer = await asyncio.wait_for(client.post(f"{AT}/wait"), 5)

    assert "from.the.future" in answer.json()["message"]


@pytest.mark.usefixtures("broken_sessions")
async def test_what_was_projected_before_is_still_read(
    client: httpx.AsyncClient, project: Project
) -> None:
    """Marked, as it is not all there is."""
    project("ses_1", seq=2, title="as it was")

    answer = await client.get(AT)

    assert answer.json()["data"]["title"] == "as it was"
    assert answer.headers["fairlead-stale"] == "true"


@pytest.mark.usefixtures("broken_sessions")
async def test_history_is_read_without_postgres(
    client: httpx.AsyncClient, read: MemoryReadModel
) -> None:
    """D7: the log alone says where it ends."""
    read.unavailable = "down"

    assert await _history(client) == ([2], False, 3)
    assert await _history(client, after=1) == ([2], False, 3)


@pytest.mark.usefixtures("broken_sessions")
async def test_explain_says_that_a_log_cannot_be_read(client: httpx.AsyncClient) -> None:
    """H-19, P-27."""
    data = (await client.get(f"{AT}/explain")).json()["data"]

    assert (data["state"], data["code"]) == ("broken", "unreadable")
    assert "from.the.future" in data["reason"]
    assert data["unreadable"]["seq"] == 3


@pytest.mark.usefixtures("broken_sessions")
@pytest.mark.parametrize("path", ["", "/history", "/todo", "/explain", "/event"])
async def test_a_purged_one_is_not_found_although_its_log_is_not_erased_yet(
    client: httpx.AsyncClient, plant: Plant, path: str
) -> None:
    """D7, H-29."""
    draft = Draft("evt_last", 1, SessionPurged())
    await plant(encode(Commit("cmt_last", record((draft,), after=3))))

    answer = await client.get(AT + path)

    assert (answer.status_code, answer.json()["_tag"]) == (404, "SessionNotFoundError")


@pytest.mark.usefixtures("broken_sessions")
async def test_other_sessions_are_read_as_ever(client: httpx.AsyncClient, append: Append) -> None:
    await append("ses_2", ADMITTED, SessionArchived())

    answer = await client.get("/api/session/ses_2/history")

    assert len(answer.json()["data"]) == 1
    assert "unreadable" not in answer.json()
