"""A prompt's whole way: over HTTP, over NATS, through the durable intake, to every reader."""

import asyncio
from typing import Any

import orjson
import pytest

from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_schema import subjects
from fairlead_schema.identity.verbs import LOCATION_VERBS, VERBS
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_testing.stack import Stack, check_log, event_types

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TURN = [
    "session.next.prompt.admitted",
    "session.next.prompted",
    "session.next.step.started",
    "session.next.text.started",
    "session.next.text.ended",
    "session.next.step.ended",
]


async def test_a_prompt_over_http_is_answered_and_read_back(up: Stack) -> None:
    """D-01: the durable order of a plain text turn, as clients see it."""
    session = await up.client.create()

    receipt = await up.client.prompt(session.id, "Hello there")
    log = await up.wait_until_rested(session.id)

    check_log(log)
    history = (await up.http.get(f"/api/session/{session.id}/history")).json()
    assert [event["type"] for event in history["data"]] == TURN
    assert not history["hasMore"]
    assert receipt.admitted_seq == history["data"][0]["durable"]["seq"]
    messages = (await up.http.get(f"/api/session/{session.id}/message?order=asc")).json()["data"]
    assert [message["type"] for message in messages] == ["user", "assistant"]
    assert messages[0]["text"] == "Hello there"
    assert messages[0]["time"]["created"] == receipt.time_created
    assert "Hello there" in messages[1]["content"][0]["text"]
    assert messages[1]["finish"] == "stop"
    context = (await up.http.get(f"/api/session/{session.id}/context")).json()["data"]
    assert context == messages
    single = await up.http.get(f"/api/session/{session.id}/message/{messages[1]['id']}")
    assert single.json()["data"] == messages[1]


async def test_a_session_sums_up_what_its_turns_used(up: Stack) -> None:
    """I-18 decided: totals follow step events."""
    session = await up.client.create()
    await up.client.prompt(session.id, "one")
    await up.wait_until_rested(session.id)

    info = await up.client.get(session.id)

    assert info.tokens.input > 0
    assert info.cost > 0
    listed = (await up.http.get("/api/session?limit=1")).json()["data"]
    assert listed[0]["id"] == session.id
    active = (await up.http.get("/api/session/active")).json()["data"]
    assert session.id not in active


async def test_a_prompt_over_nats_is_answered(up: Stack) -> None:
    session = await up.session()

    answer = await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": "Ahoy"}})
    log = await up.wait_until_rested(session)

    check_log(log)
    assert answer["data"]["admittedSeq"] == 2
    assert answer["data"]["delivery"] == "steer"
    assert event_types(log) == [
        "session.created",
        "prompt.admitted",
        "execution.claimed",
        "context.initialised",
        "prompt.promoted",
        "attempt.dispatched",
        "step.started",
        "text.started",
        "text.ended",
        "step.ended",
        "execution.released",
    ]


async def test_every_verb_is_described_and_counted_by_the_nats_service_api(up: Stack) -> None:
    """What `nats micro info` and `nats micro stats` ask is answered by every service."""
    session = await up.session()
    await up.ask("session.get", {"sessionID": session})
    counts: dict[str, int] = {}

    async def describe(request: str, service: str) -> list[dict[str, Any]]:
        subject = f"$SRV.{request}.fairlead-{service}"
        raw = await up.eventlog.requests.request(subject, b"", timeout_s=10)
        endpoints: list[dict[str, Any]] = orjson.loads(raw)["endpoints"]
        return endpoints

    for service in ("ingest", "tools", "projector", "hooks", "gateway", "runner"):
        for endpoint in await describe("INFO", service):
            metadata = endpoint["metadata"]
            assert orjson.loads(metadata["request_schema"])["type"] == "object"
            assert orjson.loads(metadata["response_schema"])
        for endpoint in await describe("STATS", service):
            counts[endpoint["name"]] = endpoint["num_requests"]

    verbs = {verb.replace(".", "-"): rule.scope for verb, rule in VERBS.items()}
    own = {f"as-{verb}" for verb, scope in verbs.items() if scope is not None}
    every = {f"every-{verb}".replace(".", "-") for verb, rule in VERBS.items() if rule.repeatable}
    between_services = {"observe", "tooling", "spending", "lookup", "attach", "operations"}
    acts = ("apply", "capture", "discard", "prepare", "prepare-move", "restore")
    files = {f"files-{act}" for act in acts}
    browsed = {f"browse-{verb}".replace(".", "-") for verb in LOCATION_VERBS}
    assert set(counts) == {*verbs, *own, *every, *between_services, *files, *browsed}
    report = (await up.http.get("/api/operations")).json()["data"]
    kinds = ("gateway", "hooks", "ingest", "projector", "runner", "tools")
    assert {one["name"] for one in report["services"]} == {f"fairlead-{kind}" for kind in kinds}
    assert {one["version"] for one in report["services"]} == {report["version"]}
    assert counts["session-create"] >= 1
    assert counts["session-get"] >= 1


async def test_a_published_prompt_is_admitted_and_leaves_its_receipt(up: Stack) -> None:
    session = await up.session()
    at, message = Address("default", session), "msg_published1"

    body = orjson.dumps({"id": message, "prompt": {"text": "fire and forget"}})
    await up.eventlog.work.put(subjects.prompt(at), body)
    log = await up.until(session, "step.ended")

    check_log(log)
    async with open_link(up.up.operator, name="test") as link, asyncio.timeout(20):
        while (got := await link.last_message("RECEIPTS", subjects.receipt(at, message))) is None:
            await asyncio.sleep(0.05)
    receipt = orjson.loads(got.payload)["data"]
    assert receipt["id"] == message
    assert receipt["admittedSeq"] == 2


async def test_the_public_feed_tells_every_public_event_in_order(up: Stack) -> None:
    session = await up.client.create()
    await up.client.prompt(session.id, "for the record")
    await up.wait_until_rested(session.id)

    async with open_link(up.up.operator, name="test") as link, asyncio.timeout(30):
        events: list[dict[str, Any]] = []
        while len(events) < len(TURN) + 2:
            await asyncio.sleep(0.1)
            wildcard = f"fairlead.event.default.{session.id}.>"
            got, _ = await link.read_subject("EVENTS", wildcard, first=1, batch=100)
            events = [orjson.loads(item.payload) for item in got]

    told = [event["type"] for event in events]
    assert told == ["session.created", *TURN, "execution.released"]
    assert [event["durable"]["seq"] for event in events] == sorted(
        event["durable"]["seq"] for event in events
    )


async def test_deltas_are_heard_live_and_never_stored(up: Stack) -> None:
    """H-34, H-36, I-41, D-07, P-09: fragments between durable events, without moving the cursor."""
    session = await up.client.create()
    text = ""
    frames: list[tuple[str, int | None]] = []

    async def listen() -> None:
        nonlocal text
        async for event in up.client.follow(session.id):
            opened.set()
            frames.append((event.type, event.seq))
            if event.type == "text.delta":
                text += event.data["delta"]
            if event.type == "step.ended":
                return

    opened = asyncio.Event()
    listening = asyncio.create_task(listen())
    await asyncio.wait_for(opened.wait(), 20)
    await asyncio.sleep(0.3)
    await up.client.prompt(session.id, '[[sim: answer="one two three" chunks=6 delay_ms=20]] go')
    await asyncio.wait_for(listening, 30)

    assert text == "one two three"
    assert all(seq is None for type_, seq in frames if type_.endswith("delta"))
    assert not [event for event in event_types(await up.events(session.id)) if "delta" in event]


async def test_steers_during_a_turn_coalesce_into_one_more(up: Stack) -> None:
    """B-08, B-09: what arrives while a turn streams joins at the next boundary, together."""
    session = await up.session()

    async def say(text: str, **more: object) -> None:
        body = {"sessionID": session, "prompt": {"text": text}, **more}
        assert "data" in await up.ask("session.prompt", body)

    await say("[[sim: chunks=20 delay_ms=50]] slowly")
    await up.until(session, "step.started")
    await say("first steer")
    await say("second steer")
    log = await up.wait_until_rested(session)

    check_log(log)
    assert event_types(log).count("step.ended") == 2
    assert event_types(log).count("execution.claimed") == 1


async def test_queued_inputs_run_one_after_another(up: Stack) -> None:
    """B-11: one queued input opens one activity, in order."""
    session = await up.session()
    for number in range(3):
        body = {"sessionID": session, "prompt": {"text": f"queued {number}"}, "delivery": "queue"}
        await up.ask("session.prompt", body)

    log = await up.until(session, "step.ended", count=3)

    check_log(log)
    promoted: list[Any] = [item.event for item in log if item.event.type == "prompt.promoted"]
    assert [event.prompt.text for event in promoted] == ["queued 0", "queued 1", "queued 2"]


async def test_admitting_without_resume_waits_until_somebody_asks(up: Stack) -> None:
    """A-22: admit only; A-21: an exact retry that resumes is the lever to run it."""
    session = await up.session()
    body = {"sessionID": session, "id": ids.message_id()[:-4], "prompt": {"text": "later"}}

    await up.ask("session.prompt", body | {"resume": False})
    await up.answer_another_session()
    quiet = event_types(await up.events(session))
    await up.ask("session.prompt", body)
    log = await up.wait_until_rested(session)

    assert quiet == ["session.created", "prompt.admitted"]
    assert event_types(log).count("prompt.admitted") == 1
    assert event_types(log).count("step.ended") == 1


async def test_a_provider_that_refuses_fails_the_step_and_keeps_the_session(up: Stack) -> None:
    """D-26, D-27: a failure is durable, and the next prompt is answered."""
    session = await up.session()
    body = {"sessionID": session, "prompt": {"text": "[[sim: status=500]] break"}}
    await up.ask("session.prompt", body)
    failed = await up.until(session, "step.failed")
    await up.ask("session.prompt", {"sessionID": session, "prompt": {"text": "again"}})
    log = await up.until(session, "step.ended")

    check_log(log)
    assert "step.ended" not in event_types(failed)
    assert event_types(log).count("step.ended") == 1
