"""Exact retry and its conflicts, through real processes."""

import asyncio
import signal

import pytest
from pydantic_core import from_json, to_json

from fairlead_schema import subjects
from fairlead_schema.subjects import KEY_HEADER
from fairlead_testing.stack import TIMEOUT_S, Stack, check_log, event_types

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


async def test_creating_twice_by_id_gives_one_session(up: Stack) -> None:
    """A-02, A-03, A-04: identity only, also when both arrive at once."""
    answers = await asyncio.gather(
        *(up.ask("session.create", {"id": "ses_twice", "agent": "build"}) for _ in range(8))
    )
    other = await up.ask("session.create", {"id": "ses_twice", "location": {"directory": "/x"}})

    assert len({answer["data"]["time"]["created"] for answer in answers}) == 1
    assert other["data"] == answers[0]["data"]
    assert event_types(await up.events("ses_twice")) == ["session.created"]


async def test_an_exact_retry_gets_the_same_receipt_over_both_doors(up: Stack) -> None:
    """A-14, A-15: one event, one receipt, however often and however it is asked."""
    session = await up.session()
    prompt = {"id": "msg_exact1", "prompt": {"text": "once"}}

    over_nats = await asyncio.gather(
        *(up.ask("session.prompt", prompt | {"sessionID": session}) for _ in range(6))
    )
    await up.wait_until_rested(session)
    over_http = await up.http.post(f"/api/session/{session}/prompt", json=prompt)
    log = await up.events(session)

    check_log(log)
    first = over_nats[0]["data"]
    assert all(answer["data"]["admittedSeq"] == first["admittedSeq"] for answer in over_nats)
    again = over_http.json()["data"]
    assert {key: again[key] for key in first if key != "promotedSeq"} == {
        key: value for key, value in first.items() if key != "promotedSeq"
    }
    assert again["promotedSeq"] > again["admittedSeq"]
    assert event_types(log).count("prompt.admitted") == 1


async def test_a_reused_id_with_other_content_is_a_conflict(up: Stack) -> None:
    """A-16, A-17, A-18: other text, other delivery, other session."""
    session, other = await up.session(), await up.session()
    path = f"/api/session/{session}/prompt"
    await up.http.post(path, json={"id": "msg_taken1", "prompt": {"text": "mine"}})

    conflicts = [
        await up.http.post(path, json={"id": "msg_taken1", "prompt": {"text": "other"}}),
        await up.http.post(
            path, json={"id": "msg_taken1", "prompt": {"text": "mine"}, "delivery": "queue"}
        ),
        await up.http.post(
            f"/api/session/{other}/prompt", json={"id": "msg_taken1", "prompt": {"text": "mine"}}
        ),
    ]

    assert [answer.status_code for answer in conflicts] == [409, 409, 409]
    assert {answer.json()["_tag"] for answer in conflicts} == {"ConflictError"}
    assert conflicts[0].json()["resource"] == "msg_taken1"
    assert conflicts[0].json()["message"].endswith("msg_taken1")
    assert event_types(await up.events(other)) == ["session.created"]


async def _prompt_without_id(up: Stack, session: str, text: str) -> str:
    """The id that the server mints for a prompt."""
    url = f"/api/session/{session}/prompt"
    receipt = (await up.http.post(url, json={"prompt": {"text": text}})).json()["data"]
    return str(receipt["id"])


async def test_an_id_minted_for_one_session_is_taken_in_every_other(up: Stack) -> None:
    """A-18 for ids that the server minted."""
    session, other = await up.session(), await up.session()
    minted = await _prompt_without_id(up, session, "mint me")

    answer = await up.http.post(
        f"/api/session/{other}/prompt", json={"id": minted, "prompt": {"text": "mint me"}}
    )

    assert answer.status_code == 409


async def test_without_an_id_equal_prompts_are_distinct(up: Stack) -> None:
    """A-13."""
    session = await up.session()

    first, second = [await _prompt_without_id(up, session, "same") for _ in range(2)]

    assert first != second


async def test_an_idempotency_key_makes_a_post_exact(up: Stack) -> None:
    headers = {"idempotency-key": "order-7"}
    created = [await up.http.post("/api/session", json={}, headers=headers) for _ in range(2)]
    session = created[0].json()["data"]["id"]

    receipts = [
        await up.http.post(
            f"/api/session/{session}/prompt", json={"prompt": {"text": "x"}}, headers=headers
        )
        for _ in range(2)
    ]

    assert created[1].json()["data"]["id"] == session
    assert receipts[0].json()["data"]["id"] == receipts[1].json()["data"]["id"]
    assert event_types(await up.events(session)).count("prompt.admitted") == 1


async def test_a_key_makes_every_command_exact_over_both_doors(up: Stack) -> None:
    """A-14: `agent` writes an event each time, and a late `interrupt` would stop newer work."""
    session = await up.session()
    key, path = {KEY_HEADER: "switch"}, f"/api/session/{session}/agent"
    command = to_json({"sessionID": session, "agent": "plan"})

    switched = [
        await up.http.post(path, json={"agent": agent}, headers=key)
        for agent in ("plan", "plan", "build")
    ]
    over_nats = [
        from_json(
            await up.eventlog.requests.request(
                subjects.api("default", "session.agent"), command, timeout_s=10, headers=key
            )
        )
        for _ in range(2)
    ]
    log = await up.events(session)

    assert [answer.status_code for answer in switched] == [204, 204, 409]
    assert switched[2].json()["_tag"] == "ConflictError"
    # The service of this test names no principal, so its key is another one.
    assert over_nats[0] == over_nats[1]
    assert event_types(log) == ["session.created", *["agent.switched", "command.answered"] * 2]
    check_log(log)


async def test_an_ingest_killed_behind_its_commit_answers_when_it_is_asked_again(
    up: Stack,
) -> None:
    """The crash between commit and answer: the repeat gets the answer, and decides nothing."""
    session = await up.session()
    key, path = {KEY_HEADER: "switch"}, f"/api/session/{session}/agent"

    asking = asyncio.create_task(up.http.post(path, json={"agent": "plan"}, headers=key))
    await up.until(session, "command.answered")
    up.up.kill("ingest", 0, signal.SIGKILL)
    first = await asking
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            again = await up.http.post(path, json={"agent": "plan"}, headers=key)
            if again.status_code != 503:
                break
            await asyncio.sleep(0.1)

    assert first.status_code in {204, 503}
    assert again.status_code == 204
    assert event_types(await up.events(session)).count("agent.switched") == 1
