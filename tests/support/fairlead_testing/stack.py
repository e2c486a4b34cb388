"""A whole stack that a test owns: real servers, real processes, and ways to speak to them."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.stack import run_stack
from fairlead_client import AsyncFairlead
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.http_transport import AsyncHttpTransport
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.grants.crossings import PLATFORM
from fairlead_eventlog.grants.server_config import GATEWAY
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START
from fairlead_schema import subjects
from fairlead_schema.commands.quota import TenantUsageReport
from fairlead_schema.ids import DEFAULT_TENANT
from fairlead_schema.record import Recorded
from fairlead_schema.subjects import Address
from fairlead_testing.shared_start import copy_database, shared_forks

TIMEOUT_S = 60.0
PATIENCE_S = 10.0
_ANSWER = re.compile(r'Publish Violation - Subject "_(INBOX|R_)')


@dataclass(frozen=True)
class Stack:
    """Everything a test needs of a running stack."""

    up: RunningStack
    http: httpx.AsyncClient
    eventlog: EventLog

    @property
    def client(self) -> AsyncFairlead:
        connection = AsyncHttpConnection(
            self.up.http, self.up.token, patience_s=PATIENCE_S, http=self.http
        )
        return AsyncFairlead(transport=AsyncHttpTransport(connection))

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        """The transcript of a session, oldest first."""
        return [message async for message in self.client.messages(session_id)]

    async def usage(self) -> TenantUsageReport:
        """The quotas of the caller's tenant, and what is used of each."""
        answer = await self.client.request("GET", "/api/tenant/usage")
        return TenantUsageReport.model_validate(answer["data"])

    async def ask(self, verb: str, body: object, *, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
        """One command over NATS, answered with data or an error."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        answer: dict[str, Any] = orjson.loads(
            await self.eventlog.requests.request(subjects.api(tenant, verb), raw, timeout_s=10)
        )
        return answer

    async def session(self, **body: object) -> str:
        """A fresh session."""
        created = await self.ask("session.create", body)
        session_id: str = created["data"]["id"]
        return session_id

    async def events(self, session_id: str, *, tenant: str = DEFAULT_TENANT) -> list[Recorded]:
        """Everything the log holds of a session."""
        at, head, events = Address(tenant, session_id), START, []
        more = True
        while more:
            page = await self.eventlog.log.read(at, after=head)
            events += [event for stored in page.commits for event in stored.commit.events]
            head = page.commits[-1].head if page.commits else head
            more = page.more
        return events

    async def until(
        self, session_id: str, type_: str, *, count: int = 1, tenant: str = DEFAULT_TENANT
    ) -> list[Recorded]:
        """Wait until the log holds so many events of a type; the answer is the whole log then."""
        at, counted = Address(tenant, session_id), 0
        async with asyncio.timeout(TIMEOUT_S), aclosing(_tail(self.eventlog, at)) as tail:
            async for event in tail:
                counted += event.event.type == type_
                if counted >= count:
                    break
        return await self.events(session_id, tenant=tenant)

    async def wait_until_rested(self, session_id: str) -> list[Recorded]:
        """Wait until nobody owns the session and nothing is pending; the whole log then."""
        at = Address(DEFAULT_TENANT, session_id)
        open_inputs: set[str] = set()
        owned = False
        async with asyncio.timeout(TIMEOUT_S), aclosing(_tail(self.eventlog, at)) as tail:
            async for recorded in tail:
                event: Any = recorded.event
                match event.type:
                    case "prompt.admitted":
                        open_inputs.add(event.message_id)
                    case "prompt.promoted":
                        open_inputs.discard(event.message_id)
                    case "execution.claimed":
                        owned = True
                    case "execution.released":
                        owned = False
                    case _:
                        pass
                head = (await self.eventlog.log.head(at)).seq
                if not owned and not open_inputs and recorded.seq == head:
                    break
        return await self.events(session_id)

    async def answer_another_session(self) -> None:
        """Wait for the turn of a fresh session: a wake that was sent before has then been served."""
        session_id = await self.session()
        await self.ask("session.prompt", {"sessionID": session_id, "prompt": {"text": "hello"}})
        await self.wait_until_rested(session_id)

    async def restart(self, name: str, index: int, sig: int) -> None:
        """Send a signal that ends a process, and wait until its successor is ready."""
        pid = self.up.pid(name, index)
        self.up.kill(name, index, sig)
        async with asyncio.timeout(TIMEOUT_S):
            while self.up.pid(name, index) in {pid, None}:
                await asyncio.sleep(0.02)
        await self.up.wait_ready()


async def _tail(eventlog: EventLog, at: Address) -> AsyncGenerator[Recorded, None]:
    async for stored in eventlog.log.tail(at, after=0):
        for event in stored.commit.events:
            yield event


@asynccontextmanager
async def stack(
    state: Path,
    *,
    config: Path | None = None,
    check_grants: bool = True,
    **options: Any,  # noqa: ANN401
) -> AsyncIterator[Stack]:
    """A stack for the length of a block. Its sessions may use every directory by default.

    An earlier release may use subjects that this one no longer grants: `check_grants` is off for it.
    """
    open_config = _with_open_locations(config, state.parent)
    await copy_database(state)
    async with (
        run_stack(state, config=open_config, forks=shared_forks(), **options) as up,
        connect(up.operator, name="test") as eventlog,
        httpx.AsyncClient(
            base_url=up.http,
            timeout=30.0,
            trust_env=False,
            headers={} if up.token is None else {"authorization": f"Bearer {up.token}"},
        ) as http,
    ):
        yield Stack(up, http, eventlog)
        violations = refused_subjects(up) if check_grants else []
    assert not violations, f"a service used a subject without a grant: {violations}"


def refused_subjects(up: RunningStack) -> list[str]:
    """The lines of the servers that say they refused a subject to a service of the platform."""
    logs = [up.log_path("nats", node) for node in range(len(up.nats_nodes))]
    lines = [line for path in logs for line in path.read_text().splitlines()]
    accounts = (f"{PLATFORM}/", f"{GATEWAY}/")
    refused = [
        line
        for line in lines
        if "Violation" in line and any(account in line for account in accounts)
    ]
    # A server grants the answer to a request that it delivered. A service that reconnects meanwhile
    # has no such grant any more, and its caller asks again.
    return [line for line in refused if not _ANSWER.search(line)]


def _with_open_locations(config: Path | None, place: Path) -> Path:
    """The configuration of a test, with every directory as a root unless it has its own [location]."""
    text = "" if config is None else config.read_text()
    if config is not None and "[location]" in text:
        return config
    place.mkdir(parents=True, exist_ok=True)
    path = config or place / "stack.toml"
    path.write_text(f'{text}\n[location]\nroots = ["/"]\n')
    return path


def check_log(events: Iterable[Recorded]) -> None:
    """Assert the rules that every log keeps, whichever process was killed."""
    admitted: list[str] = []
    promoted: list[str] = []
    ended: set[str] = set()
    generation = 0
    for seq, recorded in enumerate(events, start=1):
        event: Any = recorded.event
        assert recorded.seq == seq, "sequences are contiguous"
        match event.type:
            case "prompt.admitted":
                assert event.message_id not in admitted, "admitted twice"
                admitted.append(event.message_id)
            case "prompt.promoted":
                assert event.message_id in admitted, "promoted before it was admitted"
                assert event.message_id not in promoted, "promoted twice"
                promoted.append(event.message_id)
            case "execution.claimed":
                assert event.generation == generation + 1, "one owner per generation"
                generation = event.generation
            case "step.ended" | "step.failed":
                assert event.assistant_message_id not in ended, "a step ended twice"
                ended.add(event.assistant_message_id)
            case _:
                pass
    event_ids = [recorded.id for recorded in events]
    assert len(set(event_ids)) == len(event_ids), "event ids are unique"


def event_types(events: Iterable[Recorded]) -> list[str]:
    """The types of events, in order."""
    return [recorded.event.type for recorded in events]
