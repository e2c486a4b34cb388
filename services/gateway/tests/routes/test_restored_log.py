"""A restored log: cursors of the lost log are refused, and running streams end with the reason."""

import asyncio
import json

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_schema.events import SyntheticAdded
from services.gateway.tests.conftest import Append, Listen

EVENT = "/api/session/ses_1/event"
STREAM = "/api/session/ses_1/stream"
HISTORY = "/api/session/ses_1/history"
PATHS = (EVENT, STREAM, HISTORY)


def _note(index: int) -> SyntheticAdded:
    return SyntheticAdded(message_id=f"msg_{index}", text=f"said {index}")


async def _restore(eventlog: EventLog) -> None:
    await eventlog.status.begin_incarnation(after=eventlog.status.current.incarnation)


@pytest.mark.parametrize("path", PATHS)
async def test_a_cursor_of_another_incarnation_is_expired(
    client: httpx.AsyncClient, eventlog: EventLog, append: Append, path: str
) -> None:
    """C9: the restored log may have such a place again, with another event in it."""
    await append("ses_1", _note(1), _note(2))
    page = await client.get(HISTORY)
    log = page.headers["fairlead-log"]

    await _restore(eventlog)

    refused = await client.get(path, params={"after": "2", "log": log})
    assert (refused.status_code, refused.json()["_tag"]) == (410, "CursorExpiredError")
    assert "start again from the beginning" in refused.json()["message"]
    again = await client.get(HISTORY)
    assert again.headers["fairlead-log"] != log
    on = await client.get(HISTORY, params={"after": "2", "log": again.headers["fairlead-log"]})
    assert [item["durable"]["seq"] for item in on.json()["data"]] == [3]


@pytest.mark.parametrize("path", PATHS)
async def test_a_cursor_beyond_the_end_says_where_to_start_again(
    client: httpx.AsyncClient, append: Append, path: str
) -> None:
    """C9: also without the name of a log. An empty page would hide all later events."""
    await append("ses_1", _note(1))

    refused = await client.get(path, params={"after": "9"})

    assert (refused.status_code, refused.json()["_tag"]) == (400, "InvalidCursorError")
    assert "start again from the beginning" in refused.json()["message"]


@pytest.mark.parametrize("path", [EVENT, STREAM])
async def test_a_running_stream_ends_with_the_reason(
    eventlog: EventLog, append: Append, listen: Listen, path: str
) -> None:
    """C9: its client has events that the log no longer has."""
    await append("ses_1", _note(1))
    async with listen(path) as chunks:
        while await asyncio.wait_for(chunks.get(), 5) != b": caught-up\n\n":
            pass

        await _restore(eventlog)

        frame = (await asyncio.wait_for(chunks.get(), 5)).decode()
    assert frame.startswith("event: effect/httpapi/stream/failure\n")
    assert json.loads(frame.partition("data: ")[2])["_tag"] == "CursorExpiredError"


@pytest.mark.parametrize("path", PATHS)
async def test_a_cursor_without_the_name_of_a_log_stays_valid(
    client: httpx.AsyncClient, eventlog: EventLog, append: Append, listen: Listen, path: str
) -> None:
    """Clients of earlier releases send a seq alone."""
    await append("ses_1", _note(1), _note(2))
    await _restore(eventlog)

    if path == HISTORY:
        page = await client.get(path, params={"after": "2"})
        assert [item["durable"]["seq"] for item in page.json()["data"]] == [3]
    else:
        async with listen(path, "after=2") as chunks:
            assert (await asyncio.wait_for(chunks.get(), 5)).startswith(b"id: 3\n")
