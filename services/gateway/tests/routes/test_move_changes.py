"""`POST …/move` with changes: what ingest receives, how long a client waits, and how it ends."""

import asyncio
from typing import Any

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_schema.errors import Conflict, SessionNotFound
from fairlead_schema.events import (
    ExecutionClaimed,
    MoveBegun,
    MoveEnded,
    MoveFailed,
    MoveRequested,
    SessionEvent,
    SessionMoved,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.record import LEVEL_NEWEST
from services.gateway.tests.conftest import Append, FakeIngest

MOVE = "/api/session/ses_1/move"
THERE = {"directory": "/there"}
BODY = {"location": THERE, "moveChanges": True}
REQUEST = MoveRequested(location=LocationRef(directory="/there"))
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")
BEGUN = MoveBegun(before="a", target="b", changed="c", kept="d")
MOVED = SessionMoved(location=LocationRef(directory="/there"))


@pytest.fixture(autouse=True)
async def _finalise_newest(eventlog: EventLog) -> None:
    await eventlog.status.finalise(LEVEL_NEWEST)


def reached(request: int | None = 2) -> dict[str, Any]:
    return {"data": {"sessionID": "ses_1", "seq": 2, "request": request}}


@pytest.mark.parametrize(
    ("events", "status", "tag"),
    [
        ((BEGUN, MOVED, MoveEnded()), 204, None),
        ((BEGUN, MOVED, MoveEnded(undiscarded="'a' changed")), 409, "ChangesKeptError"),
        ((BEGUN, MoveFailed(reason="conflict")), 409, "MoveRefusedError"),
    ],
)
async def test_a_client_waits_until_a_runner_has_served_the_request(
    client: httpx.AsyncClient,
    ingest: FakeIngest,
    append: Append,
    events: tuple[SessionEvent, ...],
    status: int,
    tag: str | None,
) -> None:
    """N-17, N-20: the answer says how the move ended."""
    await append("ses_1")
    await append("ses_1", REQUEST)
    ingest.serve("session.move", reached())

    asking = asyncio.create_task(client.post(MOVE, json=BODY))
    await asyncio.sleep(0.05)
    assert not asking.done()
    await append("ses_1", CLAIMED, *events)
    answer = await asking

    assert answer.status_code == status, answer.text
    assert (answer.json()["_tag"] if answer.content else None) == tag
    assert ingest.commands == [{"sessionID": "ses_1", **BODY}]


@pytest.mark.parametrize("body", [{"location": THERE}, {"location": THERE, "moveChanges": False}])
async def test_a_plain_move_waits_for_nobody(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, body: dict[str, Any]
) -> None:
    """N-21: ingest gets the command that earlier releases know."""
    await append("ses_1")
    ingest.serve("session.move", reached(None))

    answer = await client.post(MOVE, json=body)

    assert answer.status_code == 204
    assert ingest.commands == [{"sessionID": "ses_1", "location": THERE}]


@pytest.mark.parametrize("value", [None, "perhaps", 7])
async def test_a_bad_field_is_refused(
    client: httpx.AsyncClient, append: Append, value: object
) -> None:
    await append("ses_1")

    answer = await client.post(MOVE, json={"location": THERE, "moveChanges": value})

    assert (answer.status_code, answer.json()["field"]) == (400, "moveChanges")


@pytest.mark.parametrize("refusal", [SessionNotFound("ses_1"), Conflict("busy", "ses_1")])
async def test_a_refusal_of_ingest_reaches_the_client(
    client: httpx.AsyncClient, ingest: FakeIngest, refusal: SessionNotFound | Conflict
) -> None:
    error = refusal.body.wire()
    ingest.serve("session.move", {"error": error})

    answer = await client.post(MOVE, json=BODY)

    assert (answer.status_code, answer.json()["_tag"]) == (refusal.status, refusal.tag)
