"""Identity over HTTP: who may call what, and what a refusal says."""

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_gateway.a2a_view.operations import a2a_operations
from fairlead_gateway.ag_ui_view.operations import ag_ui_operations
from fairlead_gateway.http import dispatch
from fairlead_gateway.http.operation import AnyOperation
from fairlead_gateway.http.principal_limits import LimitSettings, PrincipalLimits
from fairlead_gateway.opencode_view.operations import view_operations
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.identity.scopes import SCOPES
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.subjects import RESTRICTIONS_HEADER, Address
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.configuration import Config, ConfigError
from fairlead_service.identity.authenticator import build_authenticator
from fairlead_service.identity.key_file import add_key, revoke_key
from fairlead_service.identity.keys import mint_key
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, FakeIngest, Listen, Project
from services.gateway.tests.http.sample_requests import sample_request

STREAMS = {"session.event", "session.stream", "event.subscribe"}
SCOPED = [operation for operation in OPERATIONS if operation.scope is not None]
# The live stream names no id and has no end; `test_live_events` shows that it keeps to its tenant.
WITH_AN_END = [operation for operation in SCOPED if operation.id != "event.subscribe"]


def operation_id(operation: AnyOperation) -> str:
    return operation.id


class Keys:
    """A keys file that a test writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, *roles: str, **fields: Any) -> str:  # noqa: ANN401 - fields of a key
        key, entry = mint_key(roles, **fields)
        add_key(self.path, entry)
        return key


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    file = Keys(tmp_path / "keys.json")
    file.add("admin", name="first")
    return file


@pytest.fixture
def settings(keys: Keys) -> GatewaySettings:
    auth = AuthConfig(keys_file=str(keys.path))
    return GatewaySettings(directory="/srv", fresh_timeout_s=0.02, heartbeat_s=0.05, auth=auth)


@pytest.fixture
def runtime(
    monkeypatch: pytest.MonkeyPatch,
    settings: GatewaySettings,
    eventlog: EventLog,
    read: MemoryReadModel,
) -> Runtime:
    monkeypatch.setattr("fairlead_service.identity.watched_file.CHECK_INTERVAL_S", 0)
    limits = PrincipalLimits(settings.limits)
    return Runtime(settings, lambda: eventlog, read, build_authenticator(settings.auth), limits)


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_only_health_and_the_sign_in_have_no_scope() -> None:
    free = ["health.read", "sign-in.methods", "sign-in.start", "sign-in.end"]
    assert [o.id for o in OPERATIONS if o.scope is None] == free
    assert {operation.scope for operation in SCOPED} <= set(SCOPES)


@pytest.mark.parametrize("operation", SCOPED, ids=operation_id)
async def test_an_operation_that_sends_a_verb_has_the_scope_of_the_verb(
    client: httpx.AsyncClient,
    eventlog: EventLog,
    append: Append,
    keys: Keys,
    operation: AnyOperation,
) -> None:
    """Both doors, HTTP and NATS, follow one table."""
    await append("ses_1")
    verbs: list[str] = []

    async def record(subject: str, *_args: object, **_kwargs: object) -> bytes:
        prefix, _, verb = subject.partition("fairlead.api.default.")
        if not prefix:
            verbs.append(verb)
        return b'{"error":{"_tag":"ConflictError","message":"stop"}}'

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.request = record  # type: ignore[method-assign]
    if operation.id not in STREAMS:
        await sample_request(operation).send(client, **bearer(keys.add("admin")))

    assert [VERBS[verb].scope for verb in verbs] == [operation.scope] * len(verbs)


@pytest.mark.parametrize("operation", SCOPED, ids=operation_id)
async def test_every_operation_refuses_a_caller_without_credentials(
    client: httpx.AsyncClient, append: Append, operation: AnyOperation
) -> None:
    await append("ses_1")

    answer = await sample_request(operation).send(client)

    assert (answer.status_code, answer.json()["_tag"]) == (401, "UnauthorizedError")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("operation", SCOPED, ids=operation_id)
async def test_every_operation_names_the_scope_that_is_missing(
    client: httpx.AsyncClient, ingest: FakeIngest, keys: Keys, operation: AnyOperation
) -> None:
    others = [scope for scope in SCOPES if scope != operation.scope]

    answer = await sample_request(operation).send(client, **bearer(keys.add(*others)))

    assert (answer.status_code, answer.json()["_tag"]) == (403, "ForbiddenError")
    assert f"The scope {operation.scope} is missing" in answer.json()["message"]
    assert ingest.commands == []


@pytest.mark.parametrize("operation", WITH_AN_END, ids=operation_id)
async def test_the_ids_of_another_tenant_are_not_found_and_nothing_changes(
    client: httpx.AsyncClient,
    eventlog: EventLog,
    append: Append,
    project: Project,
    keys: Keys,
    operation: AnyOperation,
) -> None:
    """A foreign id and an unknown id get the same answer."""
    before = (await append("ses_1")).head
    project("ses_1")
    assert isinstance(eventlog.requests, MemoryRequests)
    subjects: list[str] = []

    async def ingest_of_tenant(subject: str, *_args: object, **_kwargs: object) -> bytes:
        subjects.append(subject)
        return b'{"error":{"_tag":"SessionNotFoundError","message":"gone","sessionID":"ses_1"}}'

    eventlog.requests.request = ingest_of_tenant  # type: ignore[method-assign]
    stranger = bearer(keys.add("admin", tenant="acme"))

    answer = await sample_request(operation).send(client, **stranger)

    if operation.in_session or "{" in operation.path or subjects:
        assert answer.status_code == 404
    else:
        assert "ses_1" not in answer.text
    assert {subject.split(".")[2] for subject in subjects} <= {"acme"}
    assert await eventlog.log.head(Address(DEFAULT_TENANT, "ses_1")) == before


async def test_a_key_is_a_bearer_token_or_the_password_of_basic(
    client: httpx.AsyncClient, keys: Keys
) -> None:
    key = keys.add("viewer")

    assert (await client.get("/api/agent", headers=bearer(key))).status_code == 200
    assert (await client.get("/api/agent", auth=("opencode", key))).status_code == 200
    assert (await client.get("/api/agent", auth=("root", key))).status_code == 401
    assert (await client.get(f"/api/agent?token={key}")).status_code == 401


async def test_two_authorization_headers_are_refused(client: httpx.AsyncClient, keys: Keys) -> None:
    """A proxy in front may have checked another one than the gateway would."""
    key = keys.add("viewer")

    answer = await client.get(
        "/api/agent", headers=[("authorization", f"Bearer {key}"), ("authorization", "Bearer x")]
    )

    assert answer.status_code == 401


class TestWithQueryTokens:
    """The setting `auth.query_tokens` is on."""

    @pytest.fixture
    def settings(self, keys: Keys) -> GatewaySettings:
        auth = AuthConfig(keys_file=str(keys.path), query_tokens=True)
        return GatewaySettings(directory="/srv", auth=auth)

    async def test_a_token_in_the_query_counts_and_is_never_logged(
        self, client: httpx.AsyncClient, keys: Keys, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "fairlead_gateway")
        key = keys.add("viewer")

        answer = await client.get(f"/api/agent?token={key}")
        refused = await client.get("/api/agent?token=flk_a_0123456789abcdef0123")

        assert (answer.status_code, refused.status_code) == (200, 401)
        lines = [str(vars(record)) for record in caplog.records if record.name != "httpx"]
        assert not [line for line in lines if "flk_" in line]


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer flk_",
        "Bearer flk_a_b",
        "Bearer flk_unknown_" + "0" * 64,
        "Basic",
        "Basic %%%",
        "Basic b3BlbmNvZGU=",
        "Digest x",
        "flk_a_b",
        "Bearer " + "x" * 100_000,
    ],
)
async def test_credentials_that_are_none_are_refused(
    client: httpx.AsyncClient, authorization: str
) -> None:
    answer = await client.get("/api/agent", headers={"authorization": authorization})

    assert answer.status_code == 401


async def test_expired_and_revoked_keys_are_refused_and_others_stay(
    client: httpx.AsyncClient, keys: Keys
) -> None:
    old, new = keys.add("viewer"), keys.add("viewer")
    expired = keys.add("viewer", expires=datetime.now(UTC) - timedelta(seconds=1))
    revoke_key(keys.path, old.split("_")[1], at=datetime.now(UTC))

    answers = [await client.get("/api/agent", headers=bearer(key)) for key in (old, expired, new)]

    assert [answer.status_code for answer in answers] == [401, 401, 200]
    assert "revoked" in answers[0].json()["message"]
    assert "expired" in answers[1].json()["message"]


async def test_a_wrong_secret_of_a_known_key_is_refused(
    client: httpx.AsyncClient, keys: Keys
) -> None:
    key = keys.add("viewer")

    answer = await client.get(
        "/api/agent", headers=bearer(f"{key[:-1]}{'a' if key[-1] != 'a' else 'b'}")
    )

    assert (answer.status_code, answer.json()["message"]) == (
        401,
        "The key is not known: ask for a new one",
    )


async def test_failed_logins_are_limited_and_never_hold_up_a_valid_key(
    client: httpx.AsyncClient, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever shares an address with an attacker, behind one proxy perhaps, still gets in."""
    monkeypatch.setattr("fairlead_gateway.http.failed_logins.BURST", 3)
    guess, key = bearer("flk_a_0123456789abcdef0123"), bearer(keys.add("viewer"))

    refused = [await client.get("/api/agent", headers=guess) for _ in range(4)]

    assert [answer.status_code for answer in refused] == [401, 401, 401, 429]
    assert refused[-1].headers["retry-after"] == "1"
    assert (await client.get("/api/agent", headers=key)).status_code == 200


class TestWithFewRequests:
    """A principal may send two requests."""

    @pytest.fixture
    def settings(self, keys: Keys) -> GatewaySettings:
        auth, limits = AuthConfig(keys_file=str(keys.path)), LimitSettings(0.001, 2)
        return GatewaySettings(directory="/srv", auth=auth, limits=limits)

    async def test_requests_without_the_scope_count_too(
        self, client: httpx.AsyncClient, keys: Keys
    ) -> None:
        """B13: a caller without the scope could otherwise ask for ever."""
        viewer = bearer(keys.add("viewer"))

        answers = [await client.post("/api/session", json={}, headers=viewer) for _ in range(3)]

        assert [answer.status_code for answer in answers] == [403, 403, 429]


async def test_commands_carry_the_principal_and_its_restrictions(
    client: httpx.AsyncClient, eventlog: EventLog, ingest: FakeIngest, keys: Keys
) -> None:
    ingest.serve("session.interrupt", {"data": {"sessionID": "ses_1", "seq": 1}})
    key = keys.add("user", roots=("/work",), cost=2.5)

    await client.post("/api/session/ses_1/resume", headers=bearer(key))

    assert isinstance(eventlog.requests, MemoryRequests)
    assert eventlog.requests.callers == [f"key:{key.split('_')[1]}"]
    (headers,) = eventlog.requests.headers
    assert json.loads(headers[RESTRICTIONS_HEADER]) == {"roots": ["/work"], "cost": 2.5}


async def test_always_needs_a_scope_of_its_own(
    client: httpx.AsyncClient, ingest: FakeIngest, keys: Keys
) -> None:
    ingest.serve("permission.reply", {"data": {"sessionID": "ses_1", "seq": 1}})
    path = "/api/session/ses_1/permission/per_1/reply"
    user, approver = bearer(keys.add("user")), bearer(keys.add("approver"))

    once = await client.post(path, json={"reply": "once"}, headers=user)
    always = await client.post(path, json={"reply": "always"}, headers=user)
    saved = await client.post(path, json={"reply": "always"}, headers=approver)

    assert (once.status_code, always.status_code, saved.status_code) == (204, 403, 204)
    assert "approval:save" in always.json()["message"]


VIEWS: dict[str, dict[str, Any]] = {
    "/ag-ui": {"threadId": "ses_1", "runId": "run_1", "messages": []},
    "/a2a": {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "ses_1.msg_1.1"}},
    "/session/ses_1/message": {"parts": [{"type": "text", "text": "hi"}]},
    "/session/ses_1/command": {"command": "compact"},
    "/session/ses_1/shell": {"command": "ls"},
}


@pytest.mark.parametrize("path", VIEWS)
async def test_a_view_that_shows_a_session_needs_the_scope_to_read(
    runtime: Runtime, append: Append, ingest: FakeIngest, keys: Keys, path: str
) -> None:
    """These routes of other protocols write and read at once. A key that may only write reads nothing."""
    await append("ses_1")
    operations = (*a2a_operations(), *ag_ui_operations(), *view_operations())
    app = Starlette(routes=dispatch.build_routes(runtime, operations))
    guarded = dispatch.guard_and_log(app, runtime.settings.origin_rules)
    writer = bearer(keys.add("session:write", "ask:reply"))

    transport = httpx.ASGITransport(guarded)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post(path, json=VIEWS[path], headers=writer)

    assert answer.status_code == 403, answer.text
    assert "The scope session:read is missing" in answer.json()["message"]
    assert ingest.commands == []


async def test_purge_needs_a_scope_of_its_own(
    client: httpx.AsyncClient, ingest: FakeIngest, keys: Keys
) -> None:
    for verb in ("session.archive", "session.delete"):
        ingest.serve(verb, {"data": {"sessionID": "ses_1", "seq": 1}})
    user = bearer(keys.add("user"))

    archived = await client.delete("/api/session/ses_1", headers=user)
    purged = await client.delete("/api/session/ses_1?purge=true", headers=user)

    assert (archived.status_code, purged.status_code) == (204, 403)
    assert "session:purge" in purged.json()["message"]


@pytest.mark.parametrize("route", ["event", "stream"])
async def test_a_stream_ends_when_the_credentials_expire_and_says_so(
    listen: Listen, append: Append, keys: Keys, route: str
) -> None:
    await append("ses_1")
    key = keys.add("viewer", expires=datetime.now(UTC) + timedelta(seconds=1))

    async with listen(f"/api/session/ses_1/{route}", headers=bearer(key)) as chunks:
        frame = await _failure(chunks)

    assert frame["_tag"] == "UnauthorizedError"
    assert "expired" in frame["message"]


async def test_a_stream_ends_when_its_key_is_revoked(
    listen: Listen, append: Append, keys: Keys
) -> None:
    await append("ses_1")
    key = keys.add("viewer")

    async with listen("/api/session/ses_1/event", headers=bearer(key)) as chunks:
        await asyncio.wait_for(chunks.get(), 20)
        revoke_key(keys.path, key.split("_")[1], at=datetime.now(UTC))
        frame = await _failure(chunks)

    assert "revoked" in frame["message"]


async def _failure(chunks: asyncio.Queue[bytes]) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            chunk = await chunks.get()
            if chunk.startswith(b"event: effect/httpapi/stream/failure"):
                frame: dict[str, Any] = json.loads(chunk.split(b"data: ")[1])
                return frame


async def test_every_refusal_is_one_audit_line(
    client: httpx.AsyncClient, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead.audit")
    key = keys.add("viewer", tenant="acme")

    await client.get("/api/agent")
    await client.post("/api/session", json={}, headers=bearer(key))
    await client.get("/api/agent", headers=bearer(key))

    records = [vars(record) for record in caplog.records if record.name == "fairlead.audit"]
    lines = [line for line in records if line["outcome"] == "refused"]
    assert [line["action"] for line in lines] == ["agent.list", "session.create"]
    assert lines[1]["principal"] == f"key:{key.split('_')[1]}"
    assert (lines[1]["tenant"], lines[1]["resource"]) == ("acme", "/api/session")
    assert "session:write" in lines[1]["reason"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gateway.example"])  # noqa: S104
def test_an_open_door_to_other_machines_is_refused_at_the_start(host: str) -> None:
    config = Config.model_validate({"gateway": {"host": host}, "auth": {"mode": "open"}})

    with pytest.raises(ConfigError, match="keys_file"):
        GatewaySettings.of(config)


def test_a_gateway_without_any_authentication_does_not_start() -> None:
    with pytest.raises(ConfigError, match="nobody could authenticate: configure"):
        build_authenticator(AuthConfig())


def test_an_open_door_for_this_machine_is_allowed() -> None:
    config = Config.model_validate({"auth": {"mode": "open"}})

    assert GatewaySettings.of(config).auth.mode == "open"
