"""The routes and streams of OpenCode's terminal client over in-memory twins (WIRE-TUI)."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.tenant_broadcasts import MemoryTenantBroadcasts
from fairlead_schema.delta import TextDelta
from fairlead_schema.events import PermissionAsked, PromptAdmitted
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.message import CompactionMessage, CreationTime
from fairlead_schema.permission import PermissionRequest
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Draft
from fairlead_schema.session_info import SessionTime
from fairlead_schema.subjects import Address
from fairlead_service.ids import now_ms
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, FakeIngest, Listen, Project
from services.gateway.tests.opencode_view.sample_turns import COMPACTED, FAILED, REVERTED, TEXT

ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="Hello"), delivery="steer")
ASK = PermissionRequest(id="per_1", session_id="ses_1", action="bash", resources=("ls",))
PROMPT = {"parts": [{"type": "text", "text": "Hello"}]}


async def _next(chunks: "asyncio.Queue[bytes]") -> dict[str, Any]:
    frame = await asyncio.wait_for(chunks.get(), 5)
    event: dict[str, Any] = json.loads(frame.removeprefix(b"data: "))
    return event


@pytest.mark.parametrize(
    "path",
    [
        "/config/providers",
        "/provider",
        "/agent",
        "/config",
        "/path",
        "/project/current",
        "/session",
        "/session/status",
        "/experimental/capabilities",
        "/experimental/console",
        "/command",
        "/lsp",
        "/mcp",
        "/vcs",
        "/permission",
        "/question",
    ],
)
async def test_everything_that_a_client_asks_at_its_start_is_answered(
    client: httpx.AsyncClient, path: str
) -> None:
    """A route that fails or answers HTML ends the client."""
    response = await client.get(path)

    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"


async def test_an_unknown_session_and_an_unknown_ask_are_not_found(
    client: httpx.AsyncClient,
) -> None:
    answers = [
        await client.get("/session/ses_9"),
        await client.get("/session/ses_9/message"),
        await client.post("/session/ses_9/message", json=PROMPT),
        await client.post("/permission/per_9/reply", json={"reply": "once"}),
        await client.post("/question/que_9/reject"),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    assert all(answer.json()["message"] for answer in answers)


async def test_the_list_of_messages_has_input_that_is_not_projected(
    client: httpx.AsyncClient, append: Append, project: Project
) -> None:
    """The list replaces what the stream brought, so that it must not be behind the stream."""
    await append("ses_1", ADMITTED)
    project("ses_1")

    messages = (await client.get("/session/ses_1/message?limit=100")).json()

    assert [message["info"]["id"] for message in messages] == ["msg_1"]
    assert messages[0]["parts"][0]["text"] == "Hello"


async def test_a_session_opens_without_the_read_models(
    client: httpx.AsyncClient, append: Append, read: MemoryReadModel
) -> None:
    """A failure counts as an empty history, and takes away what the screen shows."""
    for events in COMPACTED:
        await append("ses_1", *events)
    read.unavailable = "Postgres is away"

    messages = (await client.get("/session/ses_1/message?limit=100")).json()

    assert [message["info"]["id"] for message in messages] == ["msg_3", "msg_3a"]


async def test_the_history_before_a_compaction_comes_from_the_read_models(
    client: httpx.AsyncClient,
    append: Append,
    project: Project,
    messages: Callable[[int], dict[int, dict[str, Any]]],
) -> None:
    """They may know later messages that a revert has taken away since."""
    for events in COMPACTED:
        await append("ses_1", *events)
    summary = CompactionMessage(
        id="msg_3", reason="manual", summary="A summary", recent="", time=CreationTime(created=1)
    )
    gone = {"id": "msg_4", "type": "user", "text": "gone", "time": {"created": 9}}
    project("ses_1", seq=99).messages = {**messages(2), 30: summary.wire(), 40: gone}

    listed = (await client.get("/session/ses_1/message?limit=100")).json()

    assert [message["info"]["id"] for message in listed] == ["msg_1", "msg_2", "msg_3", "msg_3a"]


async def test_an_old_session_with_the_newest_activity_is_first(
    client: httpx.AsyncClient, project: Project
) -> None:
    """`run -c` goes on with the first one, whenever somebody made it."""
    project("ses_old", time=SessionTime(created=1, updated=9000))
    for number in range(4):
        project(f"ses_{number}", created=1000 + number)

    listed = (await client.get("/session?limit=3")).json()

    assert [session["id"] for session in listed] == ["ses_old", "ses_3", "ses_2"]


async def test_a_client_is_told_of_prompts_and_pieces_of_text(
    append: Append, listen: Listen, eventlog: EventLog
) -> None:
    at = Address(DEFAULT_TENANT, "ses_1")
    delta = TextDelta(assistant_message_id="msg_2", text_id="t1", delta="Good", index=0)
    await append("ses_1")

    async with listen("/global/event") as chunks:
        connected = await _next(chunks)
        await append("ses_1", *TEXT[1])
        prompt = [await _next(chunks) for _ in range(4)]
        await append("ses_1", *TEXT[2])
        await append("ses_1", *TEXT[3])
        begun = [await _next(chunks) for _ in range(5)]
        await eventlog.deltas.send(at, delta)
        piece = (await _next(chunks))["payload"]

    assert connected["payload"]["type"] == "server.connected"
    types = [event["payload"]["type"] for event in prompt]
    assert types == [
        "session.updated",
        "message.updated",
        "message.part.updated",
        "session.status",
    ]
    assert prompt[0]["directory"] == "/work"
    text = begun[-1]["payload"]["properties"]["part"]
    assert (piece["type"], piece["properties"]["delta"]) == ("message.part.delta", "Good")
    assert piece["properties"]["partID"] == text["id"]


async def test_a_fork_of_a_whole_session_comes_without_a_body(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """The dialog of the client sends nothing for the entry that means all of the session."""
    await append("ses_1", *TEXT[0])
    forked = {
        "id": "ses_2",
        "projectID": "p",
        "title": "t",
        "location": {"directory": "/work"},
        "time": {"created": 1, "updated": 1},
        "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }
    ingest.serve("session.fork", {"data": forked})

    answer = await client.post("/session/ses_1/fork")

    assert (answer.status_code, answer.json()["id"]) == (200, "ses_2")
    assert "messageID" not in ingest.commands[0]


async def test_a_client_that_connects_again_is_told_of_pending_asks(
    append: Append, listen: Listen, project: Project
) -> None:
    """The client reads nothing again after a broken connection."""
    await append("ses_1", ADMITTED, PermissionAsked(request=ASK, agent="build"))
    project("ses_1").asks = {"permission": [ASK.wire()]}

    async with listen("/global/event") as chunks:
        types = [(await _next(chunks))["payload"]["type"] for _ in range(6)]

    assert "permission.asked" in types
    assert types[-1] == "session.status"


def _asgi_scope(request: httpx.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.url.path,
        "raw_path": request.url.raw_path,
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }


async def _read_until(
    chunks: "asyncio.Queue[bytes]", type_: str, status: str = ""
) -> list[dict[str, Any]]:
    """The events up to one of this type, with this status."""
    found: list[dict[str, Any]] = []
    while True:
        found.append((await _next(chunks))["payload"])
        told = found[-1]["properties"].get("status", {}).get("type", "")
        if (found[-1]["type"], told) == (type_, status):
            return found


async def test_a_client_that_was_away_is_told_how_a_turn_ended(
    append: Append, listen: Listen, project: Project
) -> None:
    """Another gateway served it, or this one has started anew. Its spinner would turn for ever."""
    for events in FAILED:
        await append("ses_1", *events)
    project("ses_1", created=now_ms())
    project("ses_2")

    async with listen("/global/event") as chunks:
        told = await _read_until(chunks, "session.status", "idle")

    parts = [one["properties"]["part"] for one in told if "part" in one["properties"]]
    assert [part["text"] for part in parts if part["type"] == "text"] == ["Hello", "Good"]
    # The failure was shown in its time, and stands in the message.
    assert "session.error" not in [one["type"] for one in told]


async def test_an_interrupt_of_a_session_at_rest_repeats_how_its_turn_ended(
    client: httpx.AsyncClient, append: Append, listen: Listen, ingest: FakeIngest
) -> None:
    """A person presses Escape because the client shows work that has ended."""
    for events in TEXT:
        await append("ses_1", *events)
    ingest.serve("session.interrupt", {"data": {"sessionID": "ses_1", "seq": 9}})

    async with listen("/global/event") as chunks:
        await _next(chunks)
        answer = await client.post("/session/ses_1/abort")
        told = await _read_until(chunks, "session.status", "idle")

    assert answer.json() is True
    assert [one["type"] for one in told].count("message.updated") == 2


async def test_nobody_sees_the_sessions_of_another_tenant(
    append: Append, listen: Listen, eventlog: EventLog, client: httpx.AsyncClient
) -> None:
    foreign = Address("other", "ses_1")

    async with listen("/global/event") as chunks:
        await _next(chunks)
        head = await eventlog.log.head(foreign)
        drafts = tuple(Draft(f"evt_x{at}", 1, event) for at, event in enumerate(TEXT[0]))
        await eventlog.log.append(foreign, "cmt_x", drafts, after=head)
        await append("ses_2")
        event = await _next(chunks)

    assert event["payload"]["properties"]["sessionID"] == "ses_2"
    assert (await client.get("/session/ses_1")).status_code == 404


async def test_a_stream_that_may_have_missed_something_ends_without_a_frame(
    listen: Listen, append: Append, eventlog: EventLog
) -> None:
    """A frame that the client does not know would end its reading for ever."""
    await append("ses_1")

    async with listen("/global/event") as chunks:
        await _next(chunks)
        assert isinstance(eventlog.tenant_broadcasts, MemoryTenantBroadcasts)
        eventlog.tenant_broadcasts.lose(DEFAULT_TENANT)
        await asyncio.sleep(0.05)

        assert chunks.empty()


async def test_a_prompt_is_refused_before_it_is_held(
    client: httpx.AsyncClient, append: Append, ingest: FakeIngest
) -> None:
    """A refusal means that the prompt was not accepted."""
    await append("ses_1")
    error = {"_tag": "ConflictError", "message": "The session is archived", "resource": "ses_1"}
    ingest.serve("session.prompt", {"error": error})

    refused = await client.post("/session/ses_1/message", json=PROMPT)
    empty = await client.post("/session/ses_1/message", json={"parts": []})

    assert (refused.status_code, refused.json()["message"]) == (409, "The session is archived")
    assert empty.status_code == 400


async def test_a_prompt_whose_client_goes_away_is_held_no_longer(
    app: Starlette, append: Append, ingest: FakeIngest
) -> None:
    """The session may wait for a person for days, and every wait counts against the caller's limit."""
    await append("ses_1")
    receipt = {"admittedSeq": 99, "id": "msg_1", "sessionID": "ses_1", "prompt": {"text": "Hello"}}
    ingest.serve("session.prompt", {"data": {**receipt, "delivery": "steer", "timeCreated": 1}})
    sent: list[Any] = []
    frames = [{"type": "http.request", "body": json.dumps(PROMPT).encode()}]

    async def receive() -> dict[str, Any]:
        return frames.pop() if frames else {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401 - as ASGI has it
        sent.append(message)

    request = httpx.Request("POST", "http://127.0.0.1/session/ses_1/message")
    await asyncio.wait_for(app(_asgi_scope(request), receive, send), 5)

    assert sent[0]["status"] == 200


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("msg_1", {"messageID": "msg_1", "before": True}),
        ("msg_4", {"messageID": "msg_2", "before": False}),
    ],
)
async def test_an_undo_goes_to_the_message_before_or_before_all(
    client: httpx.AsyncClient,
    append: Append,
    ingest: FakeIngest,
    first: str,
    expected: dict[str, Any],
) -> None:
    for events in REVERTED[:10]:
        await append("ses_1", *events)
    ingest.serve("revert.stage", {"data": {"sessionID": "ses_1", "seq": 1}})

    answer = await client.post("/session/ses_1/revert", json={"messageID": first})

    assert answer.status_code == 200, answer.text
    assert ingest.commands == [{"sessionID": "ses_1", "files": True, **expected}]


async def test_an_undo_of_a_prompt_that_waits_withdraws_the_prompt(
    client: httpx.AsyncClient, append: Append, ingest: FakeIngest
) -> None:
    await append("ses_1", ADMITTED)
    ingest.serve("session.cancel", {"data": {"sessionID": "ses_1", "seq": 3}})

    answer = await client.post("/session/ses_1/revert", json={"messageID": "msg_1"})

    assert "revert" not in answer.json()
    assert ingest.commands == [{"sessionID": "ses_1", "messageID": "msg_1"}]


async def test_a_client_names_a_session(
    client: httpx.AsyncClient, append: Append, ingest: FakeIngest
) -> None:
    await append("ses_1")
    session = {
        "id": "ses_1",
        "projectID": "p",
        "title": "Mine",
        "time": {"created": 1, "updated": 2},
        "location": {"directory": "/w"},
    }
    ingest.serve("session.describe", {"data": {"sessionID": "ses_1", "seq": 2, "session": session}})

    named = await client.patch("/session/ses_1", json={"title": " Mine "})
    refused = await client.patch("/session/ses_1", json={"title": "two\nlines"})

    assert (named.status_code, named.json()["title"]) == (200, "Mine")
    assert ingest.commands == [{"sessionID": "ses_1", "title": "Mine"}]
    assert refused.status_code == 400
