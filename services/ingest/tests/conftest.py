"""Ingest over an in-memory event log: a command context, and helpers for its verbs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.memory.work_queues import MemoryMessage, MemoryWorkQueues
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_ingest.command_context import CommandContext
from fairlead_ingest.settings import IngestSettings, WakeTimings
from fairlead_ingest.verbs.input.prompt import prompt
from fairlead_ingest.verbs.profile.create import create
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.events import SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId, TenantId
from fairlead_schema.model import Model
from fairlead_schema.record import Draft
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_service.rpc.answers import Answerer, Command, parse_tenant

AT = Address("default", "ses_1")
CONFIG: dict[str, Any] = {
    "default_model": "acme/fast",
    "provider": {
        "acme": {
            "protocol": "openai-chat",
            "base_url": "http://acme",
            "model": {"fast": {"variant": {"high": {"body": {"effort": "high"}}}}, "slow": {}},
        }
    },
    "agent": {"build": {}, "plan": {}},
    "location": {"roots": ["/"], "default": "/work"},
    "ingest": {"pending_inputs_max": 3, "prompt_bytes_max": 2000},
}
WAIT_S = 5.0


class BusyLog(MemoryLog):
    """Lets every caller read before any caller writes, as several processes do."""

    @override
    async def append(
        self,
        at: Address,
        commit_id: CommitId,
        drafts: tuple[Draft, ...],
        *,
        after: Head,
        by: PrincipalName | None = None,
    ) -> StoredCommit:
        await asyncio.sleep(0)
        return await super().append(at, commit_id, drafts, after=after, by=by)


def settings(wake_timings: WakeTimings | None = None, **ingest: int) -> IngestSettings:
    values = {**CONFIG, "ingest": {**CONFIG["ingest"], **ingest}}
    return IngestSettings(Config.model_validate(values), wake_timings or WakeTimings())


def create_command(**fields: object) -> CreateSession:
    return CreateSession.model_validate(fields)


def prompt_command(text: str = "hello", **fields: object) -> AdmitPrompt:
    return AdmitPrompt.model_validate({"sessionID": "ses_1", "prompt": {"text": text}, **fields})


async def create_session(context: CommandContext, session_id: str = "ses_1") -> None:
    await create(context, "default", create_command(id=session_id))


async def answer_prompt(context: CommandContext, body: bytes, *, tenant: str = "default") -> bytes:
    return await answer_command(context, body, AdmitPrompt, prompt, tenant=tenant)


async def answer_command(
    context: CommandContext,
    body: bytes,
    command: type[Command],
    verb: Callable[[CommandContext, TenantId, Command], Awaitable[Model]],
    *,
    tenant: str = "default",
) -> bytes:
    """The answer of a verb to a request body, as the server sends it."""
    answer = await Answerer(LOG_REFUSALS).answer(
        command, body, lambda command: verb(context, parse_tenant(tenant), command)
    )
    return answer.body


async def events(eventlog: EventLog, at: Address = AT) -> list[SessionEvent]:
    page = await eventlog.log.read(at, after=START)
    return [recorded.event for commit in page.commits for recorded in commit.commit.events]


async def append_events(eventlog: EventLog, *new_events: SessionEvent, at: Address = AT) -> None:
    """Append events as another service would."""
    drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in new_events)
    await eventlog.log.append(at, ids.commit_id(), drafts, after=await eventlog.log.head(at))


def wakes(eventlog: EventLog) -> list[MemoryMessage]:
    assert isinstance(eventlog.wakes, MemoryWakes)
    return eventlog.wakes.queue.messages


def jobs(eventlog: EventLog, stream: str) -> list[MemoryMessage]:
    assert isinstance(eventlog.work, MemoryWorkQueues)
    return eventlog.work.queue(stream).messages


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a bounded time until a condition holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0)


@pytest.fixture
def eventlog() -> EventLog:
    memory = memory_eventlog()
    log = BusyLog(memory.status)
    return replace(memory, log=log, broadcasts=log, shards=log)


@pytest.fixture
def context(eventlog: EventLog) -> CommandContext:
    return CommandContext(eventlog, settings())
