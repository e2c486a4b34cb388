"""The gateway over in-memory twins: the real application without servers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.ports import StoredCommit
from fairlead_gateway.http import dispatch
from fairlead_gateway.http.principal_limits import PrincipalLimits
from fairlead_gateway.reads.read_model import ReadModel
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.routes.server import openapi
from fairlead_gateway.runtime import NatsPorts, Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.events import SessionCreated, SessionEvent
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.location import LocationRef
from fairlead_schema.record import Draft
from fairlead_schema.session_info import SessionInfo, SessionTime
from fairlead_schema.subjects import Address
from fairlead_service.identity.authenticator import OpenAuthenticator
from fairlead_testing.read_model import MemoryReadModel, SessionRows

LOCATION = LocationRef(directory="/work")

INGEST_SUBJECT = "fairlead.api.default."

Append = Callable[..., Awaitable[StoredCommit]]
Project = Callable[..., SessionRows]
Listen = Callable[..., AbstractAsyncContextManager[asyncio.Queue[bytes]]]


class FakeIngest:
    """Answers each verb with a prepared reply, and records the commands."""

    def __init__(self, eventlog: EventLog) -> None:
        assert isinstance(eventlog.requests, MemoryRequests)
        self._answerers = eventlog.requests.answerers
        self.commands: list[dict[str, Any]] = []

    def serve(self, verb: str, reply: dict[str, Any] | Exception) -> None:
        async def answer(body: bytes) -> bytes:
            self.commands.append(json.loads(body))
            if isinstance(reply, Exception):
                raise reply
            return json.dumps(reply).encode()

        self._answerers[INGEST_SUBJECT + verb] = answer

    def serve_in_turn(self, verb: str, *replies: dict[str, Any]) -> None:
        """Answer the first command with the first reply, and so on."""
        waiting = list(replies)

        async def answer(body: bytes) -> bytes:
            self.commands.append(json.loads(body))
            return json.dumps(waiting.pop(0)).encode()

        self._answerers[INGEST_SUBJECT + verb] = answer


def open_runtime(
    settings: GatewaySettings, nats: Callable[[], NatsPorts | None], read: ReadModel
) -> Runtime:
    """The dependencies of routes that let everybody in."""
    limits = PrincipalLimits(settings.limits)
    return Runtime(settings, nats, read, OpenAuthenticator(), limits)


@pytest.fixture
def ingest(eventlog: EventLog) -> FakeIngest:
    return FakeIngest(eventlog)


@pytest.fixture
def eventlog() -> EventLog:
    return memory_eventlog()


@pytest.fixture
def read() -> MemoryReadModel:
    return MemoryReadModel()


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(directory="/srv/default", fresh_timeout_s=0.02, body_bytes_max=2048)


@pytest.fixture
def runtime(settings: GatewaySettings, eventlog: EventLog, read: MemoryReadModel) -> Runtime:
    return open_runtime(settings, lambda: eventlog, read)


@pytest.fixture(scope="session")
def openapi_route() -> Route:
    """The document takes a while to generate, and is the same for every test."""
    return openapi.route(OPERATIONS)


@pytest.fixture
def app(runtime: Runtime, openapi_route: Route) -> Starlette:
    routes = [*dispatch.build_routes(runtime, OPERATIONS), openapi_route]
    return dispatch.guard_and_log(Starlette(routes=routes), runtime.settings.origin_rules)


@pytest.fixture
async def client(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def append(eventlog: EventLog) -> Append:
    """Commits events to a session's log, and creates the session if it is new."""
    ids = count(1)

    async def _append(session_id: str, *events: SessionEvent) -> StoredCommit:
        at = Address(DEFAULT_TENANT, session_id)
        head = await eventlog.log.head(at)
        created = SessionCreated(title="t", project_id="global", location=LOCATION)
        all_events = events if head.seq else (created, *events)
        drafts = tuple(
            Draft(f"evt_{next(ids):03}", 1000 + next(ids), event) for event in all_events
        )
        return await eventlog.log.append(at, f"cmt_{next(ids)}", drafts, after=head)

    return _append


@pytest.fixture
def project(read: MemoryReadModel) -> Project:
    """Puts a session into the read models."""

    def _project(
        session_id: str,
        *,
        seq: int = 1,
        created: int = 1000,
        **fields: Any,  # noqa: ANN401 - fields of SessionInfo
    ) -> SessionRows:
        session = SessionInfo(
            id=session_id,
            project_id=fields.pop("project_id", "global"),
            time=fields.pop("time", SessionTime(created=created, updated=created)),
            title=fields.pop("title", "A session"),
            location=fields.pop("location", LOCATION),
            **fields,
        )
        rows = read.rows[Address(DEFAULT_TENANT, session_id)] = SessionRows(session, seq)
        return rows

    return _project


@pytest.fixture
def messages() -> Callable[[int], dict[int, dict[str, Any]]]:
    """User messages msg_1, msg_2, … as rows, at sequences 10, 20, …"""

    def _messages(number: int) -> dict[int, dict[str, Any]]:
        return {
            10 * index: {
                "id": f"msg_{index}",
                "type": "user",
                "text": f"text {index}",
                "time": {"created": index},
            }
            for index in range(1, number + 1)
        }

    return _messages


@pytest.fixture
def listen(app: Starlette) -> Listen:
    """Opens a stream and yields its frames. The end of the block disconnects the client."""

    @asynccontextmanager
    async def _listen(
        path: str, query: str = "", headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[asyncio.Queue[bytes]]:
        chunks: asyncio.Queue[bytes] = asyncio.Queue()
        disconnect = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [
                (k.lower().encode(), v.encode())
                for k, v in ({"host": "127.0.0.1"} | dict(headers or {})).items()
            ],
        }

        async def receive() -> dict[str, Any]:
            await disconnect.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
            if message["type"] == "http.response.body" and message["body"]:
                # A chunk may hold several frames.
                for frame in message["body"].removesuffix(b"\n\n").split(b"\n\n"):
                    await chunks.put(frame + b"\n\n")

        request_task = asyncio.create_task(app(scope, receive, send))
        try:
            yield chunks
        finally:
            disconnect.set()
            await asyncio.wait_for(request_task, 2)

    return _listen
