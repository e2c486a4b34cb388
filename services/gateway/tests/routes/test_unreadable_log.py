"""A log with an unreadable commit: its session says why on every route, and others work."""

import asyncio

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address
from services.gateway.tests.conftest import Append, Listen, Project

AT = "/api/session/ses_1"
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="steer")


@pytest.fixture
async def broken(append: Append, eventlog: EventLog) -> MemoryLog:
    """A session whose third event comes from the future."""
    await append("ses_1", ADMITTED)
    assert isinstance(eventlog.log, MemoryLog)
    strange = (
        b'{"id":"cmt_x","events":[{"id":"evt_x","seq":3,"type":"from.the.future","version":9,'
        b'"time":1,"data":{}}]}'
    )
    await eventlog.log.append_raw(Address(DEFAULT_TENANT, "ses_1"), strange)
    return eventlog.log


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("path", ["", "/message", "/history", "/event", "/stream", "/todo"])
async def test_why_it_cannot_be_read_is_told(client: httpx.AsyncClient, path: str) -> None:
    """H-19: a typed error with what stood there, not a defect of ours."""
    answer = await client.get(AT + path)

    assert (answer.status_code, answer.json()["_tag"]) == (503, "ServiceUnavailableError")
    assert answer.json()["service"] == "session.log"
    assert "from.the.future" in answer.json()["message"]


@pytest.mark.usefixtures("broken")
async def test_nobody_waits_for_it(client: httpx.AsyncClient) -> None:
    answer = await asyncio.wait_for(client.post(f"{AT}/wait"), 5)

    assert "from.the.future" in answer.json()["message"]


@pytest.mark.usefixtures("broken")
async def test_what_was_projected_before_is_still_read(
    client: httpx.AsyncClient, project: Project
) -> None:
    """Marked, as it is not all there is."""
    project("ses_1", seq=2, title="as it was")

    answer = await client.get(AT)

    assert answer.json()["data"]["title"] == "as it was"
    assert answer.headers["fairlead-stale"] == "true"


@pytest.mark.usefixtures("broken")
async def test_explain_says_that_a_log_cannot_be_read(client: httpx.AsyncClient) -> None:
    """H-19, P-27."""
    data = (await client.get(f"{AT}/explain")).json()["data"]

    assert (data["state"], data["code"]) == ("broken", "unreadable")
    assert "from.the.future" in data["reason"]


async def test_a_stream_tells_all_before_it_and_then_why_it_ends(
    broken: MemoryLog, listen: Listen
) -> None:
    """What follows it can be read as a commit, but not as a part of this session."""
    at = Address(DEFAULT_TENANT, "ses_1")
    readable = (
        b'{"id":"cmt_y","events":[{"id":"evt_y","seq":4,"type":"session.archived","version":1,'
        b'"time":1,"data":{}}]}'
    )
    await broken.append_raw(at, readable)

    async with listen(f"{AT}/event", "after=0") as chunks:
        received = b""
        async with asyncio.timeout(5):
            while b"stream/failure" not in received:
                received += await chunks.get()

    assert b"prompt.admitted" in received
    assert b"session.archived" not in received
    assert b"from.the.future" in received


@pytest.mark.usefixtures("broken")
async def test_other_sessions_are_read_as_ever(client: httpx.AsyncClient, append: Append) -> None:
    await append("ses_2", ADMITTED)

    answer = await client.get("/api/session/ses_2/history")

    assert len(answer.json()["data"]) == 1
