"""`POST …/revert/*`: what ingest receives, how long a client waits, and how it ends."""

import asyncio
from typing import Any

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_gateway.log import runner_wait
from fairlead_schema.errors import (
    Conflict,
    MessageNotFound,
    Refused,
    RevertRefused,
    SessionNotFound,
)
from fairlead_schema.events import (
    ExecutionClaimed,
    RevertBegun,
    RevertCleared,
    RevertFailed,
    RevertRequested,
    RevertStaged,
    SessionEvent,
    SessionPurged,
)
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.session_values.revert_state import RevertedFile, RevertState
from services.gateway.tests.conftest import Append, FakeIngest

AT = "/api/session/ses_1/revert"
BODY = {"messageID": "msg_1"}
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
BEGUN = RevertBegun(original="a", target="b")
FILE = RevertedFile(path="a.txt", status="modified", additions=1, deletions=2, patch="@@")
STAGED = RevertStaged(
    revert=RevertState(message_id="msg_1", snapshot="a", diff="@@", files=(FILE,))
)
CLEAR = RevertRequested(action="clear")
STAGE = RevertRequested(action="stage", message_id="msg_1")


@pytest.fixture(autouse=True)
async def _finalise_newest(eventlog: EventLog) -> None:
    await eventlog.status.finalise(LEVEL_NEWEST)


def reached(request: int | None = 2, *, seq: int = 2) -> dict[str, Any]:
    return {"data": {"sessionID": "ses_1", "seq": seq, "request": request}}


async def test_a_stage_is_answered_with_what_the_runner_staged(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """N-06: the answer has the boundary, the snapshot, the diff and the files with their counts."""
    await append("ses_1", STAGE)
    ingest.serve("revert.stage", reached())

    asking = asyncio.create_task(client.post(f"{AT}/stage", json=BODY))
    await asyncio.sleep(0.05)
    assert not asking.done()
    await append("ses_1", CLAIMED, BEGUN, STAGED)
    answer = await asking

    assert answer.status_code == 200, answer.text
    assert answer.json() == {"data": STAGED.revert.wire()}
    assert ingest.commands == [{"sessionID": "ses_1", **BODY, "files": True, "before": False}]


async def test_files_stay_out_of_a_stage_that_moves_the_boundary_alone(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """N-05"""
    await append("ses_1", STAGE, CLAIMED, STAGED)
    ingest.serve("revert.stage", reached())

    await client.post(f"{AT}/stage", json={**BODY, "files": False, "before": True})

    assert ingest.commands == [{"sessionID": "ses_1", **BODY, "files": False, "before": True}]


async def test_a_clear_waits_for_the_files_and_has_no_answer(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    """N-07"""
    await append("ses_1", STAGE, CLAIMED, STAGED)
    await append("ses_1", CLEAR)
    ingest.serve("revert.clear", reached(5, seq=5))

    asking = asyncio.create_task(client.post(f"{AT}/clear"))
    await asyncio.sleep(0.05)
    assert not asking.done()
    await append("ses_1", RevertCleared())
    answer = await asking

    assert (answer.status_code, answer.content) == (204, b"")
    assert ingest.commands == [{"sessionID": "ses_1"}]


@pytest.mark.parametrize("verb", ["clear", "commit"])
async def test_nothing_to_do_waits_for_nobody(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, verb: str
) -> None:
    """N-07, N-08"""
    await append("ses_1")
    ingest.serve(f"revert.{verb}", reached(None, seq=1))

    answer = await client.post(f"{AT}/{verb}")

    assert (answer.status_code, answer.content) == (204, b"")
    assert ingest.commands == [{"sessionID": "ses_1"}]


@pytest.mark.parametrize(("verb", "request_event"), [("stage", STAGE), ("clear", CLEAR)])
async def test_a_failed_request_says_why(
    client: httpx.AsyncClient,
    ingest: FakeIngest,
    append: Append,
    verb: str,
    request_event: SessionEvent,
) -> None:
    """N-12: without git the reason is a typed refusal, not a defect."""
    failed = RevertFailed(reason="git is not installed where the tools service runs")
    await append("ses_1", request_event, CLAIMED, failed)
    ingest.serve(f"revert.{verb}", reached())

    answer = await client.post(f"{AT}/{verb}", json=BODY if verb == "stage" else None)

    assert (answer.status_code, answer.json()["_tag"]) == (409, "RevertRefusedError")
    assert "git is not installed" in answer.json()["message"]


async def test_a_stage_that_somebody_cleared_meanwhile_is_a_conflict(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1", STAGE, CLAIMED, STAGED, RevertCleared())
    ingest.serve("revert.stage", reached())

    answer = await client.post(f"{AT}/stage", json=BODY)

    assert (answer.status_code, answer.json()["_tag"]) == (409, "ConflictError")


async def test_a_session_that_is_purged_meanwhile_is_not_found(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1", STAGE)
    ingest.serve("revert.stage", reached())

    asking = asyncio.create_task(client.post(f"{AT}/stage", json=BODY))
    await asyncio.sleep(0.05)
    await append("ses_1", SessionPurged())
    answer = await asking

    assert (answer.status_code, answer.json()["_tag"]) == (404, "SessionNotFoundError")


async def test_a_runner_that_takes_too_long_is_reported_and_goes_on(
    client: httpx.AsyncClient,
    ingest: FakeIngest,
    append: Append,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner_wait, "WAIT_S", 0.05)
    await append("ses_1", STAGE)
    ingest.serve("revert.stage", reached())

    answer = await client.post(f"{AT}/stage", json=BODY)

    assert (answer.status_code, answer.json()["service"]) == (503, "session.revert")
    assert "goes on" in answer.json()["message"]


@pytest.mark.parametrize("verb", ["stage", "clear", "commit"])
@pytest.mark.parametrize(
    "refusal",
    [
        SessionNotFound("ses_1"),
        MessageNotFound("ses_1", "msg_1"),
        Conflict("The session is archived: unarchive it first", "ses_1"),
        RevertRefused("A summary has replaced the message", "ses_1"),
    ],
    ids=lambda refusal: refusal.tag,
)
async def test_a_refusal_of_ingest_reaches_the_client(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, verb: str, refusal: Refused
) -> None:
    """N-01: an unknown message, a purged or archived session, a compacted boundary."""
    await append("ses_1")
    ingest.serve(f"revert.{verb}", {"error": refusal.body.wire()})

    answer = await client.post(f"{AT}/{verb}", json=BODY if verb == "stage" else None)

    assert (answer.status_code, answer.json()["_tag"]) == (refusal.status, refusal.tag)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "messageID"),
        ({"messageID": None}, "messageID"),
        ({"messageID": "nonsense"}, "messageID"),
        ({**BODY, "files": "perhaps"}, "files"),
    ],
)
async def test_a_bad_body_is_refused(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, body: object, field: str
) -> None:
    await append("ses_1")

    answer = await client.post(f"{AT}/stage", json=body)

    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert ingest.commands == []
