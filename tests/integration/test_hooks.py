"""Webhooks end to end: a real receiver that fails, stalls, repeats, redirects and goes away."""

import asyncio
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from standardwebhooks.webhooks import Webhook

from fairlead_client import SignatureInvalid, verify_webhook
from fairlead_schema.events import PromptAdmitted
from fairlead_service import ids
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import mint_key
from fairlead_session.schedules.run_ids import run_message_id, run_session_id
from fairlead_testing.stack import Stack, stack
from fairlead_testing.webhook_receiver import OK, Received, Receiver, Reply, receive_webhooks

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

CONFIG = """\
[hooks]
private = true
timeout_s = 1.0
retry_s = 0.2
retry_s_max = 0.4
attempts_max = 4
refresh_s = 1.0
webhooks_max = 12
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack with two hooks processes, which may post to this machine."""
    place: Path = tmp_path_factory.mktemp("hooks")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(place / "state", config=config, scale={"hooks": 2}, sim=True) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def receiver() -> AsyncIterator[Receiver]:
    async with receive_webhooks() as running:
        yield running


async def register(up: Stack, url: str, *events: str) -> dict[str, Any]:
    """A new webhook with its secret, and whatever its removal needs."""
    body = {"url": url, "events": events or ["rested"]}
    answer = await up.http.post("/api/webhook", json=body)
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()["data"]
    return changed


async def remove(up: Stack, webhook: dict[str, Any]) -> None:
    answer = await up.http.delete(f"/api/webhook/{webhook['webhook']['id']}")
    assert answer.status_code == 204


async def status_of(up: Stack, webhook: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Wait until a webhook has a status."""
    async with asyncio.timeout(30):
        while True:
            answer = await up.http.get(f"/api/webhook/{webhook['webhook']['id']}")
            info: dict[str, Any] = answer.json()["data"]
            if info["status"] == wanted:
                return info
            await asyncio.sleep(0.05)


async def test_a_turn_reaches_the_receiver_signed_and_as_a_cloud_event(
    up: Stack, receiver: Receiver
) -> None:
    made = await register(up, f"{receiver.url}/turn", "turn-ended", "rested")
    session = await up.session()
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": "hello"}})
    requests = await receiver.until("/turn", 2)

    kinds = {request.event["fairleadevent"]: request for request in requests}
    assert kinds.keys() == {"turn-ended", "rested"}
    event = kinds["turn-ended"].event
    assert (event["specversion"], event["source"]) == ("1.0", "/fairlead/default")
    assert (event["type"], event["subject"]) == ("session.next.step.ended", session)
    assert event["data"]["durable"]["aggregateID"] == session
    assert kinds["rested"].event["data"]["data"]["reason"] == "idle"
    for request in requests:
        assert request.headers["content-type"] == "application/cloudevents+json"
        assert verify_webhook(made["secret"], request.headers, request.body).id == request.delivery
        # The published library of Standard Webhooks reads the same headers.
        assert Webhook(made["secret"]).verify(request.body, request.headers) == request.event
        with pytest.raises(SignatureInvalid):
            verify_webhook(made["secret"], request.headers, request.body + b" ")
    await remove(up, made)


def failing(times: int, status: str) -> Reply:
    """Answers with a status so many times, and accepts everything afterwards."""
    left = iter(range(times))
    return lambda _request: status if next(left, None) is not None else OK


async def prompt(up: Stack, text: str = "hello") -> str:
    """A fresh session with one turn under way."""
    session = await up.session()
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": text}})
    return session


async def test_a_failed_delivery_is_repeated_under_its_id_while_others_go_on(
    up: Stack, receiver: Receiver
) -> None:
    """A receiver that stalls holds back nobody but itself."""
    receiver.answers["/flaky"] = failing(2, "500 Broken")
    receiver.answers["/stalled"] = lambda _request: None
    made = [await register(up, f"{receiver.url}{path}") for path in ("/flaky", "/stalled", "/well")]
    await prompt(up)
    repeats = await receiver.until("/flaky", 3)
    await receiver.until("/well")

    assert len({request.delivery for request in repeats}) == 1
    assert len({request.body for request in repeats}) == 1
    assert len(receiver.on("/well")) == 1
    assert (await status_of(up, made[1], "failing"))["reason"] == "no answer within 1 s"
    assert (await status_of(up, made[0], "active"))["url"].endswith("/flaky")
    await asyncio.gather(*(remove(up, webhook) for webhook in made))


async def test_a_delivery_that_is_given_up_is_listed_and_can_be_sent_again(
    up: Stack, receiver: Receiver
) -> None:
    receiver.answers["/moved"] = lambda _request: "302 Elsewhere\r\nlocation: /other"
    made = await register(up, f"{receiver.url}/moved")
    path = f"/api/webhook/{made['webhook']['id']}/undelivered"
    session = await prompt(up)
    await receiver.until("/moved", 4)
    async with asyncio.timeout(30):
        while not (listed := (await up.http.get(path)).json()["data"]):
            await asyncio.sleep(0.05)

    [given_up] = listed
    assert (given_up["attempts"], given_up["sessionID"]) == (4, session)
    assert "redirects (302)" in given_up["reason"]
    assert receiver.on("/other") == []
    again = (await up.http.post(f"{path}/{given_up['id']}")).json()["data"]
    assert (again["delivered"], again["status"]) == (False, 302)
    del receiver.answers["/moved"]
    webhook_path = f"/api/webhook/{made['webhook']['id']}"
    await up.http.patch(webhook_path, json={"events": ["asked"]})
    again = (await up.http.post(f"{path}/{given_up['id']}")).json()["data"]
    assert again == {"id": given_up["id"], "delivered": True, "status": 200}
    assert {request.delivery for request in receiver.on("/moved")} == {given_up["id"]}
    # The webhook has chosen other events meanwhile. That changes nothing about this one.
    assert {request.event["fairleadevent"] for request in receiver.on("/moved")} == {"rested"}
    assert (await up.http.get(path)).json()["data"] == []
    assert (await up.http.post(f"{path}/{given_up['id']}")).status_code == 404
    await remove(up, made)


async def test_a_receiver_that_is_gone_gets_nothing_until_the_webhook_is_changed(
    up: Stack, receiver: Receiver
) -> None:
    receiver.answers["/gone"] = lambda _request: "410 Gone"
    made = await register(up, f"{receiver.url}/gone")
    await prompt(up)
    await receiver.until("/gone")
    await status_of(up, made, "gone")
    # Each of the two processes learns it by its own 410, or by its next look.
    for _ in range(3):
        await up.answer_another_session()
    known = len(receiver.on("/gone"))
    assert known <= 2
    del receiver.answers["/gone"]
    answer = await up.http.patch(f"/api/webhook/{made['webhook']['id']}", json={"paused": False})
    assert answer.json()["data"]["webhook"]["status"] == "active"
    await receiver.until("/gone", known + 1)
    await remove(up, made)


async def test_a_paused_webhook_waits_and_a_new_secret_signs_beside_the_old_one(
    up: Stack, receiver: Receiver
) -> None:
    made = await register(up, f"{receiver.url}/rotate")
    path = f"/api/webhook/{made['webhook']['id']}"
    paused = (await up.http.patch(path, json={"paused": True, "addSecret": True})).json()["data"]
    assert paused["webhook"]["status"] == "paused"
    await up.answer_another_session()
    assert receiver.on("/rotate") == []
    await up.http.patch(path, json={"paused": False})
    [request] = await receiver.until("/rotate")

    for secret in (made["secret"], paused["secret"]):
        assert verify_webhook(secret, request.headers, request.body).kind == "rested"
    old = made["webhook"]["secrets"][0]["id"]
    changed = (await up.http.patch(path, json={"removeSecrets": [old]})).json()["data"]
    assert [secret["id"] for secret in changed["webhook"]["secrets"]] != [old]
    trial = (await up.http.post(f"{path}/test")).json()["data"]
    assert (trial["delivered"], trial["status"]) == (True, 200)
    last = receiver.on("/rotate")[-1]
    assert verify_webhook(paused["secret"], last.headers, last.body).kind is None
    with pytest.raises(SignatureInvalid, match="no signature fits"):
        verify_webhook(made["secret"], last.headers, last.body)
    await remove(up, made)
    await check_hidden(up, made["secret"], paused["secret"])


async def test_a_pause_holds_for_a_process_that_has_not_heard_of_it(
    up: Stack, receiver: Receiver
) -> None:
    """Who paused a webhook has an answer, so nothing is posted any more, however late a process is."""
    made = await register(up, f"{receiver.url}/late")
    path = f"/api/webhook/{made['webhook']['id']}"
    await up.answer_another_session()
    known = len(await receiver.until("/late"))
    up.up.kill("hooks", 1, signal.SIGSTOP)
    try:
        async with asyncio.timeout(30):
            while (await up.http.patch(path, json={"paused": True})).status_code != 200:
                await asyncio.sleep(0.1)
        for _ in range(6):
            await up.answer_another_session()
    finally:
        up.up.kill("hooks", 1, signal.SIGCONT)
    await asyncio.sleep(1.5)

    assert len(receiver.on("/late")) == known
    await up.http.patch(path, json={"paused": False})
    await receiver.until("/late", known + 6)
    await remove(up, made)


async def check_hidden(up: Stack, *secrets: str) -> None:
    """No list and no log shows a secret."""
    texts = [(await up.http.get("/api/webhook")).text]
    names = (("hooks", 0), ("hooks", 1), ("ingest", 0), ("gateway", 0))
    texts += [up.up.log_path(name, index).read_text() for name, index in names]
    assert not any(secret in text for secret in secrets for text in texts)


async def test_a_webhook_is_invisible_to_other_tenants_and_needs_its_scope(
    up: Stack, receiver: Receiver
) -> None:
    made = await register(up, f"{receiver.url}/private")
    path = f"/api/webhook/{made['webhook']['id']}"
    foreign = await key_of(up, ["admin"], tenant="rival")
    user = await key_of(up, ["user"])

    for method, place in (("GET", path), ("PATCH", path), ("POST", f"{path}/test")):
        body = {"paused": True} if method == "PATCH" else None
        answer = await up.http.request(method, place, headers=foreign, json=body)
        assert (answer.status_code, answer.json()["_tag"]) == (404, "WebhookNotFoundError")
    assert (await up.http.get("/api/webhook", headers=foreign)).json()["data"] == []
    assert (await up.http.delete(path, headers=foreign)).status_code == 204
    refused = await up.http.get(path, headers=user)
    assert refused.status_code == 403
    assert "webhook:manage" in refused.json()["message"]
    assert (await status_of(up, made, "active"))["id"] == made["webhook"]["id"]
    await check_own_events_alone(up, receiver, foreign)
    await remove(up, made)


async def check_own_events_alone(up: Stack, receiver: Receiver, foreign: dict[str, str]) -> None:
    """A webhook gets the events of its tenant, also while another tenant is busy."""
    body = {"url": f"{receiver.url}/rival", "events": ["rested", "turn-ended"]}
    made = (await up.http.post("/api/webhook", json=body, headers=foreign)).json()["data"]
    await up.answer_another_session()
    session = (await up.http.post("/api/session", json={}, headers=foreign)).json()["data"]["id"]
    text = {"prompt": {"text": "hello"}}
    await up.http.post(f"/api/session/{session}/prompt", json=text, headers=foreign)
    requests = await receiver.until("/rival", 2)

    assert {request.event["source"] for request in requests} == {"/fairlead/rival"}
    assert {request.event["subject"] for request in requests} == {session}
    path = f"/api/webhook/{made['webhook']['id']}"
    assert (await up.http.delete(path, headers=foreign)).status_code == 204


async def key_of(up: Stack, roles: list[str], *, tenant: str = "default") -> dict[str, str]:
    """The header of a fresh key that the gateway knows."""
    key, entry = mint_key(roles, tenant=tenant)
    add_key(up.up.state.keys, entry)
    headers = {"authorization": f"Bearer {key}"}
    async with asyncio.timeout(30):
        while (await up.http.get("/api/session", headers=headers)).status_code == 401:
            await asyncio.sleep(0.1)
    return headers


async def test_a_process_that_dies_after_its_post_leads_to_a_repeat_with_the_same_id(
    up: Stack, receiver: Receiver
) -> None:
    """SIGKILL between the post and the acknowledgement: the receiver sees the delivery twice."""

    def kill(_request: Received) -> str:
        receiver.answers.pop("/killed", None)
        for index in (0, 1):
            up.up.kill("hooks", index, signal.SIGKILL)
        return OK

    receiver.answers["/killed"] = kill
    made = await register(up, f"{receiver.url}/killed")
    await prompt(up)
    first, second = await receiver.until("/killed", 2)

    assert (first.delivery, first.body) == (second.delivery, second.body)
    await up.up.wait_ready()
    await remove(up, made)


async def schedule(up: Stack, **body: object) -> dict[str, Any]:
    answer = await up.http.post("/api/schedule", json={"prompt": {"text": "hello"}, **body})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


async def last_run(up: Stack, made: dict[str, Any], outcome: str) -> dict[str, Any]:
    """Wait until the last run of a schedule has an outcome."""
    async with asyncio.timeout(60):
        while True:
            info = (await up.http.get(f"/api/schedule/{made['id']}")).json()["data"]
            if info.get("last", {}).get("outcome") == outcome:
                run: dict[str, Any] = info["last"]
                return run
            await asyncio.sleep(0.05)


async def prompts_of(up: Stack, session: str) -> list[str]:
    admitted = [
        item.event for item in await up.events(session) if item.event.type == "prompt.admitted"
    ]
    return [event.message_id for event in admitted if isinstance(event, PromptAdmitted)]


async def test_a_due_prompt_is_admitted_once_by_two_processes_and_says_for_whom(up: Stack) -> None:
    made = await schedule(up, at=ids.now_ms() + 300, session="same")
    assert made["next"] == made["at"]
    run = await last_run(up, made, "admitted")

    log = await up.wait_until_rested(run["sessionID"])
    assert await prompts_of(up, run["sessionID"]) == [run["messageID"]]
    [by] = {item.by for item in log if item.event.type == "prompt.admitted"}
    assert by == made["by"]
    shown = (await up.http.get(f"/api/schedule/{made['id']}")).json()["data"]
    assert "next" not in shown
    assert (await up.http.delete(f"/api/schedule/{made['id']}")).status_code == 204


async def test_a_time_that_passes_while_nobody_runs_is_run_once_or_skipped(up: Stack) -> None:
    """A restart over a due time: exactly one prompt, and none for a schedule that skips."""
    for index in (0, 1):
        up.up.kill("hooks", index, signal.SIGSTOP)
    try:
        due = ids.now_ms() + 200
        once = await schedule(up, at=due, session="same")
        skipped = await schedule(up, at=due - 3_600_000, session="same", missed="skip")
        paused = await schedule(up, at=due, session="same")
        await up.http.patch(f"/api/schedule/{paused['id']}", json={"paused": True})
        removed = await schedule(up, at=due, session="same")
        await up.http.delete(f"/api/schedule/{removed['id']}")
        await asyncio.sleep(0.3)
    finally:
        for index in (0, 1):
            up.up.kill("hooks", index, signal.SIGKILL)
    run = await last_run(up, once, "admitted")
    await last_run(up, skipped, "skipped")

    assert await prompts_of(up, run["sessionID"]) == [run["messageID"]]
    shown = (await up.http.get(f"/api/schedule/{paused['id']}")).json()["data"]
    assert (shown["paused"], "last" in shown) == (True, False)
    assert (await up.http.get(f"/api/schedule/{removed['id']}")).status_code == 404
    await up.up.wait_ready()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_processes_that_are_killed_again_and_again_prompt_once_for_each_time(
    up: Stack,
) -> None:
    """SIGKILL at any moment of a run: before the claim, before the prompt, and before the note."""
    made = await schedule(up, cron="* * * * * *", session="same")
    for turn in range(24):
        up.up.kill("hooks", turn % 2, signal.SIGKILL)
        await asyncio.sleep(0.1 + 0.05 * (turn % 9))
    await up.up.wait_ready()
    alive = ids.now_ms()
    async with asyncio.timeout(60):
        while (await last_run(up, made, "admitted"))["due"] <= alive:
            await asyncio.sleep(0.1)
    await up.http.delete(f"/api/schedule/{made['id']}")

    prompts = await prompts_of(up, run_session_id("default", made["id"], "same", 0))
    seconds = range(made["created"] // 1000 * 1000, ids.now_ms() + 1000, 1000)
    assert len(prompts) == len(set(prompts)) > 1
    assert set(prompts) <= {run_message_id("default", made["id"], due) for due in seconds}


async def test_a_run_whose_key_was_revoked_is_refused_and_says_why(up: Stack) -> None:
    headers = await key_of(up, ["user"])
    body = {"prompt": {"text": "hello"}, "cron": "*/2 * * * * *"}
    made = (await up.http.post("/api/schedule", json=body, headers=headers)).json()["data"]
    run = await last_run(up, made, "admitted")
    revoke_key(up.up.state.keys, made["by"].removeprefix("key:"), at=datetime.now(UTC))
    refused = await last_run(up, made, "refused")

    assert refused["due"] > run["due"]
    assert refused["error"]["_tag"] == "ForbiddenError"
    foreign = await key_of(up, ["admin"], tenant="rival")
    path = f"/api/schedule/{made['id']}"
    assert (await up.http.get(path, headers=foreign)).status_code == 404
    viewer = await key_of(up, ["viewer"])
    assert (await up.http.delete(path, headers=viewer)).status_code == 403
    purged = (await up.http.delete("/api/hook")).json()["data"]
    assert purged["schedules"] >= 1
    assert (await up.http.get("/api/schedule")).json()["data"] == []
