"""A stored session: lists and messages go on, everything else names the file, and open streams end (ADR 0084)."""

import asyncio

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import StoredCommit
from fairlead_schema.events import PromptAdmitted, PromptPromoted
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import LEVEL_NEWEST, encode
from fairlead_schema.session_values.stored_file import StoredState
from fairlead_schema.subjects import Address
from fairlead_testing.commits import read_all
from fairlead_testing.stored import marker, replay_commits
from services.gateway.tests.conftest import Append, Listen, Project

AT = Address(DEFAULT_TENANT, "ses_1")
PATH = "/api/session/ses_1"
PROMPT = Prompt(text="hi")
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=PROMPT, delivery="steer")
PROMOTED = PromptPromoted(message_id="msg_1", prompt=PROMPT, created=1)
SEQ = 3


@pytest.fixture
async def commits(append: Append, eventlog: EventLog) -> tuple[StoredCommit, ...]:
    """The commits of a session that is stored now, and erased as the projector does."""
    await eventlog.status.finalise(LEVEL_NEWEST)
    await append("ses_1", ADMITTED)
    await append("ses_1", PROMOTED)
    return await read_all(eventlog.log, AT)


async def leave(append: Append, eventlog: EventLog) -> None:
    stored = await append("ses_1", marker(SEQ))
    await eventlog.log.erase(AT, before=stored.position)


async def bring_back(eventlog: EventLog, commits: tuple[StoredCommit, ...], count: int) -> None:
    events = [event for stored in commits for event in stored.commit.events]
    for commit in replay_commits(events, size=1)[:count]:
        head = await eventlog.log.head(AT)
        await eventlog.log.restore(AT, commit, encode(commit), after=head)


@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize(
    "path", ["/history", "/history?after=3", "/event?after=3", "/stream", "/todo", "/export"]
)
async def test_what_needs_the_log_names_the_file(
    client: httpx.AsyncClient, append: Append, eventlog: EventLog, path: str
) -> None:
    await leave(append, eventlog)

    refused = await client.get(PATH + path)

    body = refused.json()
    assert (refused.status_code, body["_tag"]) == (409, "SessionStoredError")
    assert body["resource"] == marker(SEQ).file.name
    assert "fairlead cold restore ses_1 --from DIR" in body["message"]


@pytest.mark.usefixtures("commits")
async def test_the_session_and_its_messages_are_read_as_before(
    client: httpx.AsyncClient, append: Append, project: Project, eventlog: EventLog
) -> None:
    """Only read models that were made again without the file have no messages to show."""
    rows = project("ses_1")
    rows.messages = {2: {"id": "msg_1", "type": "user", "text": "hi", "time": {"created": 1}}}
    await leave(append, eventlog)
    state = StoredState(**dict(marker(SEQ).file), time=9)
    rows.session = rows.session.model_copy(update={"stored": state})
    rows.seq = 0

    shown = (await client.get(PATH)).json()["data"]
    assert shown["stored"] == state.wire()
    (message,) = (await client.get(f"{PATH}/message")).json()["data"]
    assert message["id"] == "msg_1"
    assert (await client.get(f"{PATH}/message/msg_1")).status_code == 200
    explained = (await client.get(f"{PATH}/explain")).json()["data"]
    assert (explained["state"], explained["code"]) == ("stored", "stored")

    lacking = state.model_copy(update={"lacks_messages": True})
    rows.session = rows.session.model_copy(update={"stored": lacking})
    rows.messages.clear()
    for path in ("/message", "/message/msg_1"):
        assert (await client.get(PATH + path)).json()["_tag"] == "SessionStoredError"


@pytest.mark.parametrize("path", ["/event", "/stream"])
async def test_an_open_stream_ends_with_the_file_and_goes_on_after_the_restore(
    append: Append,
    eventlog: EventLog,
    listen: Listen,
    client: httpx.AsyncClient,
    commits: tuple[StoredCommit, ...],
    path: str,
) -> None:
    """H-09: a cursor at the last event is right again as soon as that event is back."""
    received = b""
    async with listen(PATH + path, "after=1") as frames, asyncio.timeout(5):
        while b"prompted" not in received:
            received += await frames.get()
        await leave(append, eventlog)
        while b"SessionStoredError" not in received:
            received += await frames.get()

    await bring_back(eventlog, commits, 2)
    history = f"{PATH}/history?after={SEQ}"
    assert (await client.get(history)).json()["_tag"] == "SessionStoredError"
    assert (await client.get(f"{PATH}{path}?after={SEQ}")).json()["_tag"] == "SessionStoredError"
    head = await eventlog.log.head(AT)
    last = replay_commits([event for one in commits for event in one.commit.events], size=1)[-1]
    await eventlog.log.restore(AT, last, encode(last), after=head)
    assert (await client.get(history)).json()["data"] == []
