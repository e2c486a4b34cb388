"""Questions to a client that shows none: `run` would wait for ever (WIRE-TUI 3.2)."""

import asyncio
from typing import Any

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_schema.events import QuestionAsked, SessionDescribed
from fairlead_schema.permission import QuestionInfo, QuestionRequest, ToolSource
from fairlead_schema.record import LEVEL_NEWEST
from services.gateway.tests.conftest import Append, FakeIngest
from services.gateway.tests.opencode_view.sample_turns import TEXT, call

PARTS = [{"type": "text", "text": "Hello"}]
CHOSEN = {"agent": "build", "model": {"providerID": "acme", "modelID": "large"}}
ASKED = QuestionAsked(
    request=QuestionRequest(
        id="que_1",
        session_id="ses_1",
        questions=(QuestionInfo(question="Which?", header="Which", options=()),),
        tool=ToolSource(message_id="msg_2", call_id="call_1"),
    )
)


@pytest.fixture(autouse=True)
async def _finalise_newest(eventlog: EventLog) -> None:
    await eventlog.status.finalise(LEVEL_NEWEST)


async def _hold(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, prompt: dict[str, Any]
) -> list[dict[str, Any]]:
    """The commands of a held prompt whose turn asks a question, and its answers if there are any."""
    receipt = {"admittedSeq": 1, "id": "msg_1", "sessionID": "ses_1", "prompt": {"text": "Hello"}}
    answer = {"data": {**receipt, "delivery": "steer", "timeCreated": 1}}
    for verb in ("session.agent", "session.model", "question.reply"):
        ingest.serve(verb, {"data": {"sessionID": "ses_1", "seq": 1}})
    ingest.serve("session.prompt", answer)
    for events in (*TEXT[1:3], call("question", {"questions": []}), (ASKED,)):
        await append("ses_1", *events)
    held = asyncio.ensure_future(client.post("/session/ses_1/message", json=prompt))
    await asyncio.sleep(0.1)
    held.cancel()
    return [command for command in ingest.commands if "answers" in command]


async def test_a_session_that_run_made_answers_its_questions_from_any_gateway(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """The rule is in the session: another gateway may serve the prompt, or this one start anew."""
    session = {
        "id": "ses_1",
        "projectID": "p",
        "title": "t",
        "time": {"created": 1, "updated": 2},
        "location": {"directory": "/w"},
    }
    ingest.serve("session.create", {"data": session})
    ingest.serve("session.describe", {"data": {"sessionID": "ses_1", "seq": 2, "session": session}})
    rules = [{"permission": "question", "pattern": "*", "action": "deny"}]
    await client.post("/session", json={"permission": rules})
    noted = ingest.commands[-1]["metadata"]
    await append("ses_1", *TEXT[0], SessionDescribed(metadata=noted))

    (reply,) = await _hold(client, ingest, append, {"parts": PARTS, **CHOSEN})

    assert reply["requestID"] == "que_1"
    assert "decide yourself" in reply["answers"][0][0]


async def test_run_in_a_session_of_somebody_else_answers_questions_too(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """`run -s` and `run -c` give no rules. Their prompts name no agent or no model."""
    await append("ses_1", *TEXT[0])

    assert await _hold(client, ingest, append, {"parts": PARTS, "agent": "build"})


async def test_a_person_in_the_terminal_answers_alone(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1", *TEXT[0])

    assert await _hold(client, ingest, append, {"parts": PARTS, **CHOSEN}) == []
