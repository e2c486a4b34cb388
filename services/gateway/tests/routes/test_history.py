"""History: public events from the log, in pages."""

from typing import Any

import httpx

from fairlead_schema.events import (
    ExecutionClaimed,
    InputEdited,
    PromptAdmitted,
    PromptPromoted,
    SyntheticAdded,
)
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, Project

PATH = "/api/session/ses_1/history"
HI = Prompt(text="hi")
CLAIMED = ExecutionClaimed(generation=1, runner="run_1")


def _note(index: int) -> SyntheticAdded:
    return SyntheticAdded(message_id=f"msg_{index}", text=f"said {index}")


def _admitted(message_id: str, delivery: Delivery) -> PromptAdmitted:
    return PromptAdmitted(message_id=message_id, prompt=HI, delivery=delivery)


async def _seqs(client: httpx.AsyncClient, **params: int) -> tuple[list[int], bool]:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return [item["durable"]["seq"] for item in data], answer.json()["hasMore"]


async def test_i35_a_session_without_public_events_is_an_empty_exhausted_page(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1")

    answer = await client.get(PATH)

    assert answer.json() == {"data": [], "hasMore": False}


async def test_i32_private_events_are_filtered_before_the_limit(
    client: httpx.AsyncClient, append: Append
) -> None:
    """Q-15: there is a finite history beside the stream."""
    await append("ses_1", CLAIMED, _note(1), CLAIMED, CLAIMED, _note(2))
    await append("ses_1", CLAIMED, _note(3))

    assert await _seqs(client, limit=2) == ([3, 6], True)
    assert await _seqs(client, limit=2, after=6) == ([8], False)
    assert await _seqs(client, after=3) == ([6, 8], False)


async def test_i33_a_page_that_ends_exactly_says_there_is_no_more(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1", _note(1), _note(2), CLAIMED)

    assert await _seqs(client, limit=2) == ([2, 3], False)
    assert await _seqs(client, limit=1) == ([2], True)


async def test_i34_events_committed_between_pages_appear_later(
    client: httpx.AsyncClient, append: Append
) -> None:
    await append("ses_1", _note(1))
    assert await _seqs(client) == ([2], False)

    await append("ses_1", _note(2))

    assert await _seqs(client, after=2) == ([3], False)


async def test_i36_history_is_fifty_events_unless_told(
    client: httpx.AsyncClient, append: Append
) -> None:
    for start in range(0, 200, 2):
        await append("ses_1", _note(start), _note(start + 1))

    default, more = await _seqs(client)
    full, _ = await _seqs(client, limit=100)

    assert (len(default), more, len(full)) == (50, True, 100)


async def test_an_event_reads_as_existing_clients_expect(
    client: httpx.AsyncClient, append: Append
) -> None:
    """H-03, H-12: the envelope names the session, and holds neither location nor metadata."""
    stored = await append("ses_1", _note(1))
    recorded = stored.commit.events[-1]

    answer = await client.get(PATH)

    assert answer.json()["data"] == [
        {
            "id": recorded.id,
            "type": "session.next.synthetic",
            "data": {
                "timestamp": recorded.time,
                "sessionID": "ses_1",
                "messageID": "msg_1",
                "text": "said 1",
            },
            "durable": {"aggregateID": "ses_1", "seq": 2, "version": 1},
        }
    ]


async def test_a_promotion_shows_the_delivery_it_was_admitted_with(
    client: httpx.AsyncClient, append: Append, project: Project, read: MemoryReadModel
) -> None:
    ids = ("msg_q", "msg_s", "msg_e")
    await append("ses_1", _admitted("msg_q", "queue"), _admitted("msg_s", "steer"))
    await append("ses_1", _admitted("msg_e", "queue"))
    await append("ses_1", InputEdited(message_id="msg_e", prompt=HI, delivery="steer"))
    await append("ses_1", *(PromptPromoted(message_id=id_, prompt=HI, created=7) for id_ in ids))

    async def deliveries(after: int) -> dict[str, str]:
        answer = await client.get(PATH, params={"after": after})
        promotions = [e for e in answer.json()["data"] if e["type"] == "session.next.prompted"]
        assert all(item["data"]["timestamp"] == 7 for item in promotions)
        return {item["data"]["messageID"]: item["data"]["delivery"] for item in promotions}

    assert await deliveries(0) == {"msg_q": "queue", "msg_s": "steer", "msg_e": "steer"}
    project("ses_1").deliveries["msg_q"] = "queue"
    assert (await deliveries(5))["msg_q"] == "queue"
    read.unavailable = "down"
    assert (await deliveries(5))["msg_q"] == "steer"
