"""Create and prompt: the command to ingest, the answer, and exact retries."""

import json
from typing import Any

import httpx
import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.errors import Conflict, InternalFailure, LimitReached, PayloadTooLarge, Refused
from fairlead_schema.ids import is_minted
from fairlead_schema.prompt import TEXT_LENGTH_MAX
from services.gateway.tests.conftest import Append, FakeIngest

CREATE = "session.create"
PROMPT = "session.prompt"
SESSION = {
    "id": "ses_1",
    "projectID": "global",
    "model": {"id": "fast", "providerID": "acme"},
    "cost": 0,
    "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    "time": {"created": 1, "updated": 1},
    "title": "New session",
    "location": {"directory": "/work"},
}
RECEIPT = {
    "admittedSeq": 2,
    "id": "msg_1",
    "sessionID": "ses_1",
    "prompt": {"text": "hi"},
    "delivery": "steer",
    "timeCreated": 5,
}


async def test_create_is_answered_with_the_session_as_clients_expect_it(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve(CREATE, {"data": SESSION})

    answer = await client.post("/api/session", json={"agent": "build", "unknown": 1})

    assert answer.status_code == 200
    assert answer.json()["data"]["model"]["variant"] == "default"
    assert answer.json()["data"]["tokens"] == SESSION["tokens"]
    assert "parentID" not in answer.json()["data"]
    (command,) = ingest.commands
    assert is_minted(command.pop("id")), "an id makes the command repeatable"
    assert command == {"agent": "build"}, "ingest knows the default of the tenant"


async def test_a09_create_hands_on_what_it_is_given(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve(CREATE, {"data": SESSION})
    body = {
        "id": "ses_mine",
        "agent": "plan",
        "model": {"id": "fast", "providerID": "acme", "variant": "high"},
        "location": {"directory": "/elsewhere", "workspaceID": "wrk_1"},
    }

    await client.post("/api/session", json=body)

    assert ingest.commands == [body]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"id": "msg_1"}, "id"),
        ({"agent": None}, "agent"),
        ({"model": {"id": "x"}}, "model.providerID"),
        ({"model": {"id": "x", "providerID": "y", "variant": None}}, "model.variant"),
        ({"location": {"directory": ""}}, "location.directory"),
        ({"location": {"directory": "/x", "workspaceID": "x"}}, "location.workspaceID"),
    ],
)
async def test_a_create_that_does_not_fit_names_its_field(
    client: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    answer = await client.post("/api/session", json=body)

    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_a11_prompt_is_answered_with_its_receipt(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1")
    ingest.serve(PROMPT, {"data": RECEIPT})

    answer = await client.post("/api/session/ses_1/prompt", json={"prompt": {"text": "hi"}})

    assert (answer.status_code, answer.json()) == (200, {"data": RECEIPT})
    (command,) = ingest.commands
    assert is_minted(command.pop("mintedID")), "an id makes the command repeatable"
    assert command == {
        "sessionID": "ses_1",
        "prompt": {"text": "hi"},
        "delivery": "steer",
        "resume": True,
    }


async def test_a12_delivery_and_resume_are_handed_on(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1")
    ingest.serve(PROMPT, {"data": RECEIPT})
    body = {"id": "msg_1", "prompt": {"text": "hi"}, "delivery": "queue", "resume": False}

    # A missing content type means JSON.
    await client.post("/api/session/ses_1/prompt", content=json.dumps(body))

    assert ingest.commands == [{**body, "sessionID": "ses_1"}]


class TestLongText:
    """The body may be larger than the longest text."""

    @pytest.fixture
    def settings(self) -> GatewaySettings:
        return GatewaySettings()

    @pytest.mark.parametrize(("method", "path"), [("POST", "prompt"), ("PATCH", "input/msg_1")])
    async def test_a_text_over_the_limit_is_refused_with_the_limit(
        self,
        client: httpx.AsyncClient,
        ingest: FakeIngest,
        append: Append,
        method: str,
        path: str,
    ) -> None:
        await append("ses_1")
        for verb in (PROMPT, "session.edit"):
            ingest.serve(verb, {"data": RECEIPT})
        longest = {"prompt": {"text": "x" * TEXT_LENGTH_MAX}}
        longer = {"prompt": {"text": "x" * (TEXT_LENGTH_MAX + 1)}}

        accepted = await client.request(method, f"/api/session/ses_1/{path}", json=longest)
        refused = await client.request(method, f"/api/session/ses_1/{path}", json=longer)

        assert accepted.status_code == 200
        assert (refused.status_code, refused.json()["_tag"]) == (400, "InvalidRequestError")
        assert (refused.json()["kind"], refused.json()["field"]) == ("Body", "prompt.text")
        assert "524288 characters" in refused.json()["message"]
        assert len(ingest.commands) == 1


async def test_an_idempotency_key_makes_a_retry_exact(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append
) -> None:
    await append("ses_1")
    ingest.serve(CREATE, {"data": SESSION})
    ingest.serve(PROMPT, {"data": RECEIPT})
    prompt = {"prompt": {"text": "hi"}}

    for key in ("one", "one", "two"):
        await client.post("/api/session", json={}, headers={"Idempotency-Key": key})
    for key in ("one", "one", "two"):
        await client.post(
            "/api/session/ses_1/prompt", json=prompt, headers={"Idempotency-Key": key}
        )

    ids = [command["id"] for command in ingest.commands]
    assert ids[0] == ids[1] != ids[2]
    assert ids[3] == ids[4] != ids[5]
    assert not any(is_minted(id_) for id_ in ids)
    assert all(id_.startswith("ses_") for id_ in ids[:3])
    assert all(id_.startswith("msg_") for id_ in ids[3:])


async def test_an_id_in_the_body_wins_over_the_idempotency_key(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve(CREATE, {"data": SESSION})

    await client.post("/api/session", json={"id": "ses_9"}, headers={"Idempotency-Key": "k"})

    assert ingest.commands[0]["id"] == "ses_9"


async def test_an_unusable_idempotency_key_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/session", json={}, headers={"Idempotency-Key": "k" * 300})

    assert answer.status_code == 400
    assert (answer.json()["kind"], answer.json()["field"]) == ("Headers", "Idempotency-Key")


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (Conflict("Message id is taken", "msg_1"), 409),
        (PayloadTooLarge("The prompt is too large"), 413),
        (LimitReached("1000 inputs are pending"), 429),
        (InternalFailure("Something", ref="err_00000000"), 500),
    ],
)
async def test_a16_what_ingest_refuses_the_client_reads(
    client: httpx.AsyncClient, ingest: FakeIngest, append: Append, refusal: Refused, status: int
) -> None:
    await append("ses_1")
    ingest.serve(PROMPT, {"error": refusal.body.wire()})

    answer = await client.post("/api/session/ses_1/prompt", json={"prompt": {"text": "hi"}})

    assert (answer.status_code, answer.json()) == (status, refusal.body.wire())
    assert ("retry-after" in answer.headers) == (status == 429)


async def test_without_ingest_commands_are_unavailable(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/session", json={})

    assert answer.status_code == 503
    assert answer.json()["_tag"] == "ServiceUnavailableError"
    assert answer.json()["service"] == "ingest"


async def test_an_ingest_that_does_not_answer_in_time_is_unavailable(
    client: httpx.AsyncClient, ingest: FakeIngest
) -> None:
    ingest.serve(CREATE, LogUnavailable("no answer"))

    answer = await client.post("/api/session", json={})

    assert (answer.status_code, answer.json()["service"]) == (503, "ingest")


async def test_a_defect_is_500_with_a_reference_that_the_log_has_too(
    client: httpx.AsyncClient, ingest: FakeIngest, caplog: pytest.LogCaptureFixture
) -> None:
    ingest.serve(CREATE, {"data": {"id": "not a session"}})

    answer = await client.post("/api/session", json={})

    ref = answer.json()["ref"]
    assert (answer.status_code, answer.json()["_tag"]) == (500, "UnknownError")
    assert len(ref) == len("err_") + 8
    assert ref in [record.__dict__.get("ref") for record in caplog.records]
