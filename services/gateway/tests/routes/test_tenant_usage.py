"""`GET /api/tenant/usage` and the quotas in an explanation. FINDINGS B11."""

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema import subjects
from fairlead_schema.commands.quota import QUOTAS, QuotaLimits
from fairlead_schema.events import PromptAdmitted
from fairlead_schema.prompt import Prompt

if TYPE_CHECKING:
    from services.gateway.tests.conftest import Append

ADMITTED = PromptAdmitted(message_id="msg_1", prompt=Prompt(text="hi"), delivery="queue")


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(
        quotas=lambda _tenant: QuotaLimits(turns=2),
        principal_quotas=lambda _tenant: QuotaLimits(sessions=3),
    )


def serve_totals(eventlog: EventLog, answer: dict[str, object]) -> None:
    async def reply(body: bytes) -> bytes:
        principal = json.loads(body).get("principal")
        own = {"data": {"principal": principal, "sessions": 2}}
        return json.dumps(answer if principal is None else own).encode()

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers[subjects.tenant_usage("default")] = reply


async def test_the_usage_of_a_tenant_lists_every_quota(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    serve_totals(eventlog, {"data": {"turns": 1, "sessions": 7, "cost": 0.5, "tokens": 9}})

    response = await client.get("/api/tenant/usage")

    data = response.json()["data"]
    uses = {use.pop("quota"): use for use in data["quotas"]}
    assert (data["tenant"], data["cost"], data["tokens"]) == ("default", 0.5, 9)
    assert set(uses) == set(QUOTAS)
    assert uses["turns"] == {"used": 1, "allowed": 2}
    assert uses["sessions"] == {"used": 7}
    own = {use.pop("quota"): use for use in data["principal"]["quotas"]}
    assert data["principal"]["name"] == "local"
    assert own == {quota: {"used": 0} for quota in QUOTAS} | {"sessions": {"used": 2, "allowed": 3}}


async def test_without_a_projector_the_usage_is_unavailable(
    client: httpx.AsyncClient, eventlog: EventLog
) -> None:
    absent = await client.get("/api/tenant/usage")
    error = {"_tag": "ServiceUnavailableError", "message": "Read models are unavailable"}
    serve_totals(eventlog, {"error": error})
    broken = await client.get("/api/tenant/usage")

    assert (absent.status_code, absent.json()["service"]) == (503, "projector")
    assert (broken.status_code, broken.json()["message"]) == (503, error["message"])


async def test_a_session_over_a_quota_says_so(
    client: httpx.AsyncClient, eventlog: EventLog, append: "Append"
) -> None:
    """B11: without the projector the explanation comes from the log alone."""
    await append("ses_1", ADMITTED)
    alone = (await client.get("/api/session/ses_1/explain")).json()["data"]
    serve_totals(eventlog, {"data": {"turns": 2}})

    full = (await client.get("/api/session/ses_1/explain")).json()["data"]

    assert alone["state"] == full["state"] == "queued"
    assert "2 of 2 running turns" not in alone["reason"]
    assert "2 of 2 running turns" in full["reason"]
