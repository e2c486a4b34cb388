"""A command that an ingest swallows is sent again, if it may be handled twice (D4)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.identity.verbs import KEYED, LOCATION_VERBS, NEEDS_ID, VERBS
from fairlead_schema.ids import is_minted
from fairlead_schema.subjects import KEY_HEADER
from services.gateway.tests.conftest import FakeIngest

Reached: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[bytes]]

RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_1",
    "sessionID": "ses_1",
    "prompt": {"text": "hi"},
    "delivery": "steer",
    "timeCreated": 1,
}
SEQ = {"sessionID": "ses_1", "seq": 1}


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(request_timeout_s=1.0)


class StuckIngest:
    """Swallows the first requests of a verb, as a process that stands still does."""

    def __init__(
        self, eventlog: EventLog, verb: str, answer: dict[str, Any], *, stuck: int
    ) -> None:
        assert isinstance(eventlog.requests, MemoryRequests)
        self.bodies: list[dict[str, Any]] = []
        self.kinds: list[str] = []
        for kind in ("api", "every"):
            subject = f"fairlead.{kind}.default.{verb}"
            eventlog.requests.answerers[subject] = self._answerer(kind, answer, stuck)

    def _answerer(
        self, kind: str, answer: dict[str, Any], stuck: int
    ) -> Callable[[bytes], Awaitable[bytes]]:
        async def handle(body: bytes) -> bytes:
            self.bodies.append(json.loads(body))
            self.kinds.append(kind)
            if len(self.bodies) <= stuck:
                await asyncio.Event().wait()
            return json.dumps({"data": answer}).encode()

        return handle


@pytest.mark.parametrize(
    ("stuck", "kinds"), [(0, ["api"]), (1, ["api", "api"]), (2, ["api", "api", "every"])]
)
async def test_a_prompt_goes_elsewhere_with_the_same_id(
    client: httpx.AsyncClient, eventlog: EventLog, stuck: int, kinds: list[str]
) -> None:
    """D4: two tries may reach the ingest that stands still; the third reaches all."""
    ingest = StuckIngest(eventlog, "session.prompt", RECEIPT, stuck=stuck)

    answer = await client.post("/api/session/ses_1/prompt", json={"prompt": {"text": "hi"}})

    assert answer.status_code == httpx.codes.OK, answer.text
    assert ingest.kinds == kinds
    assert all(body == ingest.bodies[0] for body in ingest.bodies)
    assert is_minted(ingest.bodies[0]["mintedID"])
    assert "id" not in ingest.bodies[0]


async def test_the_id_of_the_caller_stands_alone(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    ingest = StuckIngest(eventlog, "session.prompt", RECEIPT, stuck=0)

    await client.post("/api/session/ses_1/prompt", json={"id": "msg_x", "prompt": {"text": "hi"}})

    assert (ingest.bodies[0]["id"], "mintedID" in ingest.bodies[0]) == ("msg_x", False)


async def test_nobody_answers_and_the_caller_hears_it_in_time(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    ingest = StuckIngest(eventlog, "session.interrupt", SEQ, stuck=10)

    answer = await asyncio.wait_for(client.post("/api/session/ses_1/interrupt"), 20)

    assert (answer.status_code, answer.json()["service"]) == (503, "ingest")
    assert ingest.kinds == ["api", "api", "every"]


@pytest.mark.parametrize(
    ("path", "verb"), [("resume", "session.resume"), ("compact", "session.compact")]
)
async def test_what_would_happen_twice_is_sent_once(
    client: httpx.AsyncClient, eventlog: EventLog, path: str, verb: str
) -> None:
    ingest = StuckIngest(eventlog, verb, SEQ, stuck=10)

    answer = await client.post(f"/api/session/ses_1/{path}")

    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert ingest.kinds == ["api"]


@pytest.mark.parametrize(
    ("path", "verb"), [("resume", "session.resume"), ("compact", "session.compact")]
)
async def test_a_key_lets_any_command_be_sent_again(
    client: httpx.AsyncClient, eventlog: EventLog, path: str, verb: str
) -> None:
    ingest = StuckIngest(eventlog, verb, SEQ, stuck=1)

    answer = await client.post(f"/api/session/ses_1/{path}", headers={KEY_HEADER: "a key"})

    assert answer.is_success
    assert ingest.kinds == ["api", "api"]
    assert isinstance(eventlog.requests, MemoryRequests)
    assert [headers[KEY_HEADER] for headers in eventlog.requests.headers] == ["a key"] * 2


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
async def test_a_key_that_nobody_can_pass_on_is_refused(
    client: httpx.AsyncClient, key: str
) -> None:
    answer = await client.post("/api/session/ses_1/resume", headers={KEY_HEADER: key})

    assert (answer.status_code, answer.json()["field"]) == (400, KEY_HEADER)


async def test_a_permission_request_has_the_id_of_its_key(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve("permission.ask", {"data": {"id": "per_1", "effect": "ask"}})
    body = {"action": "edit", "resources": ["*"]}

    for key in ("one", "one", "two"):
        await client.post("/api/session/ses_1/permission", json=body, headers={KEY_HEADER: key})
    await client.post("/api/session/ses_1/permission", json={**body, "id": "per_own"})

    one, again, two, own = (command["id"] for command in ingest.commands)
    assert one == again != two
    assert own == "per_own"


async def test_without_any_ingest_the_caller_hears_it_at_once(
    client: httpx.AsyncClient,
) -> None:
    answer = await asyncio.wait_for(
        client.post("/api/session/ses_1/prompt", json={"prompt": {"text": "hi"}}), 0.9
    )

    assert (answer.status_code, answer.json()["message"]) == (503, "No ingest service answers now")


def test_the_table_of_repeatable_verbs() -> None:
    """A verb is repeatable if the second handling of one command changes nothing."""
    once = {
        verb for verb, rule in VERBS.items() if rule.service == "ingest" and not rule.repeatable
    }

    assert once == {
        "session.agent",
        "session.resume",
        "session.compact",
        "permission.ask",
        "permission.recheck",
        "feed.open",
        "ask.expire",
        "webhook.create",
        "webhook.change",
        "schedule.create",
        "schedule.change",
    }
    assert {verb for verb, rule in VERBS.items() if rule.repeatable} >= NEEDS_ID


def test_every_changing_verb_has_an_id_a_key_or_one_effect() -> None:
    """Item 12: a new verb says how its repeat is exact."""
    changing = {
        verb
        for verb, rule in VERBS.items()
        if rule.service == "ingest" and rule.scope not in {None, "session:read"}
    } - {"webhook.list", "webhook.get", *LOCATION_VERBS}
    # Nobody repeats them by itself: a create with its id gets a conflict, a change sets what it says.
    registrations = {
        f"{kind}.{act}" for kind in ("webhook", "schedule") for act in ("create", "change")
    }
    by_content = {"session.upload", "transfer.check", "transfer.replay", "transfer.output"}
    one_effect = {"session.delete", "session.store", "approval.remove", "transfer.claim"}
    one_effect |= {"webhook.remove", "schedule.remove", "hook.purge"}

    known = KEYED | NEEDS_ID | {"permission.ask"} | by_content | one_effect
    assert changing == known | registrations
