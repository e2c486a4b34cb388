"""Managed outputs over HTTP: whole or in part, and nobody else's."""

from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.register_ports import StoredOutput
from fairlead_gateway.routes.server.tool_output import requested_range
from fairlead_schema.subjects import Address

TEXT = b"0123456789" * 20_000


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def store(
    eventlog: EventLog, id_: str, content: bytes = TEXT, tenant: str = "default"
) -> None:
    mime = "text/plain; charset=utf-8"
    await eventlog.outputs.put(Address(tenant, "ses_1"), id_, chunks(content), mime=mime)


async def test_a_kept_output_is_read_whole(client: httpx.AsyncClient, eventlog: EventLog) -> None:
    """J-30: as it was kept, and no page of ours for a browser."""
    await store(eventlog, "out_1")

    answer = await client.get("/api/tool-output/out_1")

    assert (answer.status_code, answer.content) == (200, TEXT)
    assert answer.headers["content-length"] == str(len(TEXT))
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=5-14", 5, 14),
        ("bytes=100000-", 100_000, 199_999),
        ("bytes=-7", 199_993, 199_999),
        ("bytes=199990-999999", 199_990, 199_999),
    ],
)
async def test_a_range_is_read_alone(
    client: httpx.AsyncClient, eventlog: EventLog, header: str, first: int, last: int
) -> None:
    """J-30: with where it stands in the whole."""
    await store(eventlog, "out_1")

    answer = await client.get("/api/tool-output/out_1", headers={"range": header})

    assert (answer.status_code, answer.content) == (206, TEXT[first : last + 1])
    assert answer.headers["content-range"] == f"bytes {first}-{last}/200000"


async def test_a_range_behind_the_end_is_none(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    """J-30: the answer says how much there is."""
    await store(eventlog, "out_1", b"abc")

    answer = await client.get("/api/tool-output/out_1", headers={"range": "bytes=3-"})

    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */3")


async def test_what_is_not_there_or_not_ours_is_not_found(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    """J-30: another tenant's output is none; an id that can be none is a bad request."""
    await store(eventlog, "out_1", tenant="other")

    for id_ in ("out_1", "out_2"):
        answer = await client.get(f"/api/tool-output/{id_}")
        assert answer.status_code == 404
        assert answer.json() == {
            "_tag": "ToolOutputNotFoundError",
            "message": f"Tool output not found: {id_}",
            "resource": id_,
        }
    assert (await client.get("/api/tool-output/msg_1")).status_code == 400


async def test_an_output_that_is_purged_after_the_look_at_it_is_not_found(
    client: httpx.AsyncClient, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J-35: the answer does not begin with 200 and break off."""
    await store(eventlog, "out_1")
    stored = await eventlog.outputs.stat("default", "out_1")
    await eventlog.outputs.remove_all(Address("default", "ses_1"))

    async def old_look(_tenant: str, _output_id: str) -> StoredOutput | None:
        return stored

    monkeypatch.setattr(eventlog.outputs, "stat", old_look)
    answer = await client.get("/api/tool-output/out_1")

    assert stored is not None
    assert (answer.status_code, answer.json()["_tag"]) == (404, "ToolOutputNotFoundError")


async def test_an_empty_output_is_read(client: httpx.AsyncClient, eventlog: EventLog) -> None:
    """J-30: there, and with nothing in it."""
    await store(eventlog, "out_1", b"")

    answer = await client.get("/api/tool-output/out_1")

    assert (answer.status_code, answer.content) == (200, b"")


@given(st.one_of(st.none(), st.text(max_size=30), st.from_regex(r"bytes=\d{0,5}-\d{0,5}")))
def test_every_range_header_has_an_answer_within_the_output(header: str | None) -> None:
    """J-30: nonsense is the whole."""
    span = requested_range(header, 100)

    assert span is None or (0 <= span.start < span.stop <= 100)
