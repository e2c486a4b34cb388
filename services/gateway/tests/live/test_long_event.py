"""No frame reaches a mebibyte, whatever an event holds."""

import json
from typing import Any

import httpx
import pytest

from fairlead_schema.events import TextEnded
from fairlead_schema.raw_records.long_event import encode_event
from services.gateway.tests.conftest import Append, Listen

MEBIBYTE = 1024 * 1024
HREF = "/api/session/ses_1/history?after=6&limit=1"


def _event(**data: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    durable = {"aggregateID": "ses_1", "seq": 7, "version": 1}
    return {"id": "evt_1", "type": "x", "data": {"messageID": "msg_1", **data}, "durable": durable}


def test_an_event_that_fits_is_as_it_is() -> None:
    assert json.loads(encode_event(_event(text="x" * 1000))) == _event(text="x" * 1000)


@pytest.mark.parametrize(
    "data",
    [
        {"text": "é" * MEBIBYTE},
        {"content": [{"text": "x" * 100_000}] * 40},
        {"content": [{"text": "x" * 5_000}] * 1_000},
        {"input": {f"key{number}": 1 for number in range(200_000)}},
    ],
)
def test_a_long_event_is_cut_and_says_where_the_whole_one_is(data: dict[str, Any]) -> None:
    encoded = encode_event(_event(**data))
    event = json.loads(encoded)

    assert len(encoded) < MEBIBYTE
    assert (event["data"]["messageID"], event["durable"]["seq"]) == ("msg_1", 7)
    assert event["metadata"]["partial"]["href"] == HREF
    assert event["metadata"]["partial"]["bytes"] > MEBIBYTE


def test_an_encoded_file_is_not_cut_in_half() -> None:
    uri = "data:image/png;base64," + "A" * 2 * MEBIBYTE

    event = json.loads(encode_event(_event(files=[{"uri": uri, "mime": "image/png"}])))

    assert event["data"]["files"] == [{"uri": HREF, "mime": "image/png"}]


async def test_the_place_that_a_cut_event_names_has_all_of_it(
    append: Append, listen: Listen, client: httpx.AsyncClient
) -> None:
    text = "word " * (300 * 1024)
    await append("ses_1", TextEnded(assistant_message_id="msg_a", text_id="t", text=text))

    async with listen("/api/session/ses_1/event") as chunks:
        frame = await chunks.get()
    event = json.loads(frame.split(b"data: ", 1)[1])
    whole = (await client.get(event["metadata"]["partial"]["href"])).json()["data"][0]

    assert len(frame) < MEBIBYTE
    assert frame.startswith(b"id: 2\n")
    assert event["data"]["text"] == text[: 64 * 1024] + "…"
    assert (whole["data"]["text"], whole["id"]) == (text, event["id"])
