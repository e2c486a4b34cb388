"""Commands to an existing session: what ingest receives, and what the client reads."""

import asyncio
from typing import Any, NamedTuple

import httpx
import pytest

from fairlead_schema.errors import Conflict, MessageNotFound, Refused, SessionNotFound
from fairlead_schema.events import (
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
    PromptAdmitted,
)
from fairlead_schema.prompt import Prompt
from services.gateway.tests.conftest import Append, FakeIngest

AT = "/api/session/ses_1"
REACHED = {"data": {"sessionID": "ses_1", "seq": 3}}
RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_1",
    "sessionID": "ses_1",
    "prompt": {"text": "hi"},
    "delivery": "steer",
    "timeCreated": 5,
}
ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="steer")
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
STOPPED = ExecutionReleased(generation=1, reason="interrupted")


class Command(NamedTuple):
    """A request, its verb, and the fields of the command besides the session."""

    method: str
    path: str
    verb: str
    body: dict[str, Any] | None = None
    fields: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    status: int = 204


SLOW = {"model": {"id": "slow", "providerID": "acme"}}
THERE = {"location": {"directory": "/there"}}
COMMANDS = [
    Command("POST", "/agent", "agent", {"agent": "plan"}, {"agent": "plan"}),
    Command("POST", "/model", "model", SLOW, SLOW),
    Command("POST", "/move", "move", THERE, THERE),
    Command("POST", "/budget", "budget", {"cost": 1.5}, {"cost": 1.5}),
    Command("POST", "/budget", "budget", {}),
    Command("POST", "/interrupt", "interrupt"),
    Command("POST", "/resume", "resume", status=202),
    Command("POST", "/compact", "compact"),
    Command("POST", "/unarchive", "unarchive"),
    Command("DELETE", "", "archive"),
    Command("DELETE", "?purge=false", "archive"),
    Command("DELETE", "?purge=true", "delete"),
    Command("DELETE", "/input/msg_1", "cancel", fields={"messageID": "msg_1"}),
]


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: f"{command.method} {command.path}"
)
async def test_a_command_goes_to_its_verb_and_is_answered_without_a_body(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, command: Command
) -> None:
    """C-11, C-23, C-25, I-04, N-21: the routes that existing clients and ours know."""
    await append("ses_1")
    ingest.serve(f"session.{command.verb}", REACHED)

    answer = await client.request(command.method, AT + command.path, json=command.body)

    assert (answer.status_code, answer.content) == (command.status, b"")
    assert ingest.commands == [{"sessionID": "ses_1", **command.fields}]


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: f"{command.method} {command.path}"
)
async def test_a_session_that_ingest_does_not_know_is_404(
    client: httpx.AsyncClient, ingest: FakeIngest, command: Command
) -> None:
    """I-06, C-23: in the words of ingest."""
    ingest.serve(f"session.{command.verb}", {"error": SessionNotFound("ses_1").body.wire()})

    answer = await client.request(command.method, AT + command.path, json=command.body)

    assert (answer.status_code, answer.json()["_tag"]) == (404, "SessionNotFoundError")


async def test_a_patch_names_the_session_and_changes_metadata(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """A null goes on to ingest, where it removes its key; a bad value never leaves the gateway."""
    session = {
        "id": "ses_1",
        "projectID": "p",
        "title": "Mine",
        "time": {"created": 1, "updated": 2},
        "location": {"directory": "/w"},
        "metadata": {"ticket": 7},
    }
    await append("ses_1")
    ingest.serve("session.describe", {"data": {**REACHED["data"], "session": session}})

    answer = await client.patch(AT, json={"title": "Mine", "metadata": {"ticket": 7, "old": None}})

    assert (answer.status_code, answer.json()["data"]["metadata"]) == (200, {"ticket": 7})
    sent = {"sessionID": "ses_1", "title": "Mine", "metadata": {"ticket": 7, "old": None}}
    assert ingest.commands == [sent]
    refused = await client.patch(AT, json={"metadata": {"ticket": True}})
    assert (refused.status_code, refused.json()["_tag"]) == (400, "InvalidRequestError")
    assert len(ingest.commands) == 1


async def test_pending_inputs_are_listed(client: httpx.AsyncClient, ingest: FakeIngest) -> None:
    """A-31, P-29: receipts, in order, and those of commands that have not started."""
    command = {"id": "msg_s", "callID": "call_s", "command": "make", "promptID": "msg_1"}
    shell = {"admittedSeq": 3, "sessionID": "ses_1", "timeCreated": 4, **command}
    ingest.serve("session.pending", {"data": {"inputs": [RECEIPT], "shells": [shell]}})

    answer = await client.get(f"{AT}/input")

    assert (answer.status_code, answer.json()) == (200, {"data": [RECEIPT], "shells": [shell]})


@pytest.mark.parametrize(
    "body", [{"prompt": {"text": "better"}}, {"delivery": "steer"}], ids=["words", "delivery"]
)
async def test_an_edit_is_answered_with_the_receipt(
    client: httpx.AsyncClient, ingest: FakeIngest, body: dict[str, Any]
) -> None:
    """P-29: only what is to change is handed on."""
    ingest.serve("session.edit", {"data": RECEIPT})

    answer = await client.patch(f"{AT}/input/msg_1", json=body)

    assert (answer.status_code, answer.json()) == (200, {"data": RECEIPT})
    assert ingest.commands == [{"sessionID": "ses_1", "messageID": "msg_1", **body}]


SHELL_RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_1",
    "sessionID": "ses_1",
    "callID": "call_msg_1",
    "command": "make",
    "timeCreated": 1,
}


@pytest.mark.parametrize(
    ("verb", "body", "receipt"),
    [
        ("shell", {"command": "make"}, SHELL_RECEIPT),
        ("skill", {"skill": "sailing", "delivery": "queue", "resume": False}, RECEIPT),
    ],
)
async def test_what_a_person_puts_in_is_answered_with_its_receipt(
    client: httpx.AsyncClient,
    ingest: FakeIngest,
    verb: str,
    body: dict[str, Any],
    receipt: dict[str, Any],
) -> None:
    """P-24: the id of the caller makes a repeated command an exact retry."""
    ingest.serve(f"session.{verb}", {"data": receipt})

    answer = await client.post(f"{AT}/{verb}", json={"id": "msg_1", **body})
    minted = await client.post(f"{AT}/{verb}", json=body)

    assert (answer.status_code, answer.json()) == (200, {"data": receipt})
    assert ingest.commands[0] == {"sessionID": "ses_1", "id": "msg_1", **body}
    assert minted.status_code == 200
    assert ingest.commands[1]["mintedID"].startswith("msg_")


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (Conflict("The input is already promoted", "msg_1"), 409),
        (MessageNotFound("ses_1", "msg_1"), 404),
    ],
)
async def test_b03_what_is_promoted_or_unknown_is_refused(
    client: httpx.AsyncClient, ingest: FakeIngest, refusal: Refused, status: int
) -> None:
    for verb in ("cancel", "edit"):
        ingest.serve(f"session.{verb}", {"error": refusal.body.wire()})

    cancelled = await client.delete(f"{AT}/input/msg_1")
    edited = await client.patch(f"{AT}/input/msg_1", json={"delivery": "steer"})

    for answer in (cancelled, edited):
        assert (answer.status_code, answer.json()) == (status, refusal.body.wire())


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", "/input/msg_1", {}, None),
        ("PATCH", "/input/msg_1", {"delivery": "later"}, "delivery"),
        ("PATCH", "/input/msg_1", {"prompt": None}, "prompt"),
        ("PATCH", "/input/nope", {"delivery": "steer"}, "messageID"),
        ("DELETE", "/input/nope", None, "messageID"),
        ("POST", "/agent", {}, "agent"),
        ("POST", "/agent", {"agent": ""}, "agent"),
        ("POST", "/model", {"model": {"id": "x"}}, "model.providerID"),
        ("POST", "/move", {"location": {"directory": ""}}, "location.directory"),
        ("POST", "/budget", {"cost": -1}, "cost"),
        ("POST", "/budget", {"tokens": 1.5}, "tokens"),
        ("POST", "/budget", {"cost": None}, "cost"),
        ("DELETE", "?purge=perhaps", None, "purge"),
        ("POST", "/wait?timeout_s=0", None, "timeout_s"),
        ("POST", "/wait?timeout_s=nan", None, "timeout_s"),
        ("POST", "/wait?timeout_s=601", None, "timeout_s"),
    ],
)
async def test_what_does_not_fit_names_its_field(
    client: httpx.AsyncClient,
    append: Append,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    field: str | None,
) -> None:
    await append("ses_1")

    answer = await client.request(method, AT + path, json=body)

    assert (answer.status_code, answer.json().get("field")) == (400, field)


async def test_c12_interrupt_answers_after_the_cleanup(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1", ADMITTED, CLAIMED, InterruptRequested())
    ingest.serve("session.interrupt", REACHED)
    request = asyncio.create_task(client.post(f"{AT}/interrupt"))
    await asyncio.sleep(0.01)
    assert not request.done()

    await append("ses_1", STOPPED)

    assert (await asyncio.wait_for(request, 5)).status_code == 204
