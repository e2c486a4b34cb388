"""While a server is away, the routes that need it answer 503 with its name, and the others work."""

from dataclasses import replace

import httpx
import pytest

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import Address
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, Project, open_runtime


async def _missing_service(client: httpx.AsyncClient, method: str, path: str) -> str | None:
    answer = await client.request(method, path, json={} if method == "POST" else None)
    if answer.status_code != 503:
        return None
    assert answer.json()["_tag"] == "ServiceUnavailableError"
    service: str = answer.json()["service"]
    return service


async def test_with_postgres_away_history_goes_on_and_reads_say_so(
    client: httpx.AsyncClient, append: Append, read: MemoryReadModel
) -> None:
    await append("ses_1")
    read.unavailable = "connection refused"

    for path in ("", "/ses_1", "/ses_1/message", "/ses_1/context", "/active"):
        assert await _missing_service(client, "GET", f"/api/session{path}") == "postgres"
    assert await _missing_service(client, "GET", "/api/session/ses_1/history") is None
    assert await _missing_service(client, "GET", "/api/health") is None

    read.unavailable = None
    assert await _missing_service(client, "GET", "/api/session") is None


class TestWithoutNats:
    """NATS is not connected."""

    @pytest.fixture
    def runtime(self, settings: GatewaySettings, read: MemoryReadModel) -> Runtime:
        return open_runtime(settings, lambda: None, read)

    async def test_reads_come_from_postgres_marked_as_perhaps_stale(
        self, client: httpx.AsyncClient, project: Project
    ) -> None:
        project("ses_1")

        answer = await client.get("/api/session/ses_1")

        assert (answer.status_code, answer.headers["fairlead-stale"]) == (200, "true")

    async def test_commands_and_the_log_are_unavailable(
        self, client: httpx.AsyncClient, project: Project
    ) -> None:
        project("ses_1")

        assert await _missing_service(client, "POST", "/api/session") == "nats"
        for path in ("history", "event", "stream"):
            assert await _missing_service(client, "GET", f"/api/session/ses_1/{path}") == "nats"

    async def test_a_session_that_only_the_log_could_know_is_not_called_missing(
        self, client: httpx.AsyncClient, read: MemoryReadModel
    ) -> None:
        assert await _missing_service(client, "GET", "/api/session/ses_1") == "nats"
        read.unavailable = "down too"
        assert await _missing_service(client, "GET", "/api/session/ses_1") == "nats"


class TestDisconnected:
    """NATS was connected and is not now."""

    @pytest.fixture
    def eventlog(self, eventlog: EventLog) -> EventLog:
        return replace(eventlog, complaint=lambda: "NATS is not connected")

    async def test_a_lost_connection_is_not_waited_for(self, client: httpx.AsyncClient) -> None:
        assert await _missing_service(client, "POST", "/api/session") == "nats"


async def test_a_defect_is_told_with_a_reference(
    client: httpx.AsyncClient, append: Append, eventlog: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append("ses_1")
    assert isinstance(eventlog.log, MemoryLog)

    async def head(at: Address) -> None:
        assert at == Address(DEFAULT_TENANT, "ses_1")
        raise RuntimeError("our fault")

    monkeypatch.setattr(eventlog.log, "head", head)

    answer = await client.get("/api/session/ses_1")

    assert (answer.status_code, answer.json()["_tag"]) == (500, "UnknownError")
