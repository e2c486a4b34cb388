"""A runner over the in-memory event log, with a provider that is a small web application."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.liveness import MemoryLiveness
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_eventlog.memory.session_log import MemoryLog
from fairlead_eventlog.memory.wakes import MemoryWakes
from fairlead_eventlog.memory.work_queues import MemoryMessage
from fairlead_eventlog.ports import START, Head, StoredCommit
from fairlead_eventlog.process_life import PingResult
from fairlead_runner.runner_context import RunnerContext, build_context
from fairlead_runner.settings import RunnerSettings, RunnerTimings
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_schema import subjects
from fairlead_schema.context import ContextSample, Observation, ObservedSource
from fairlead_schema.events import PromptAdmitted, SessionCreated, SessionEvent
from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import CommitId
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Delivery, Prompt
from fairlead_schema.record import Draft, Recorded
from fairlead_schema.subjects import Address
from fairlead_service import ids
from fairlead_service.config.configuration import Config
from fairlead_session.state.session import Session

AT = Address("default", "ses_1")
WAIT_S = 5.0
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))
DATE = ObservedSource(key="core/date", value=1, baseline="Day 1", update="Now day 1")
SYSTEM = "Be careful.\nYou are running on the model acme/fast.\n\nDay 1"

E = TypeVar("E", bound=SessionEvent)
Reply: TypeAlias = Callable[[], Awaitable[Response]]
Before: TypeAlias = Callable[[tuple[Draft, ...]], Awaitable[None]]


def admitted(id_: str, text: str = "hello", delivery: Delivery = "steer") -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=Prompt(text=text), delivery=delivery)


def text_reply(text: str) -> Response:
    chunks: tuple[dict[str, Any], ...] = (
        {"choices": [{"delta": {"content": text[:2]}}]},
        {"choices": [{"delta": {"content": text[2:]}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}},
    )
    frames = [json.dumps(chunk) for chunk in chunks]
    return stream_reply(*frames, "[DONE]")


def stream_reply(*frames: str) -> Response:
    return Response(
        "".join(f"data: {frame}\n\n" for frame in frames), media_type="text/event-stream"
    )


def error_reply(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message}}, status_code=status)


class Provider:
    """A provider with the protocol openai-chat: it sends its replies in order, then `ok` for ever."""

    def __init__(self) -> None:
        self.replies: deque[Response | Reply] = deque()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def complete(self, request: Request) -> Response:
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        reply = self.replies.popleft() if self.replies else text_reply("ok")
        return reply if isinstance(reply, Response) else await reply()

    def messages(self, turn: int = -1) -> list[tuple[str, str]]:
        """The messages of a request, as role and text."""
        return [(item["role"], item["content"]) for item in self.requests[turn]["messages"]]


class WatchedLog(MemoryLog):
    """A log that calls `before` just before each append of the runner."""

    before: Before | None = None

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
        if self.before is not None:
            await self.before(drafts)
        return await super().append(at, commit_id, drafts, after=after, by=by)


@dataclass
class World:
    """One session's surroundings: the log, the provider, the tools service, the configuration."""

    eventlog: EventLog
    log: WatchedLog
    provider: Provider
    client: httpx.AsyncClient
    config: dict[str, Any]

    timings: RunnerTimings = field(
        default_factory=lambda: RunnerTimings(owner_second_look_s=0.01, worker_second_look_s=0.01)
    )

    def context(self, runner: str = "run_a") -> RunnerContext:
        settings = RunnerSettings(Config.model_validate(self.config), self.timings)
        return build_context(runner, self.eventlog, lambda _transport: self.client, settings)

    def shorten(self, **timings: float) -> None:
        """Change pauses of the runner."""
        self.timings = replace(self.timings, **timings)

    async def write(self, *events: SessionEvent, at: Address = AT) -> None:
        """Write events as another process would."""
        drafts = tuple(Draft(ids.event_id(), ids.now_ms(), event) for event in events)
        head = await self.log.head(at)
        await MemoryLog.append(self.log, at, ids.commit_id(), drafts, after=head)

    async def read_log(self, at: Address = AT) -> list[Recorded]:
        page = await self.log.read(at, after=START)
        return [recorded for stored in page.commits for recorded in stored.commit.events]

    async def events(self, at: Address = AT) -> list[SessionEvent]:
        return [recorded.event for recorded in await self.read_log(at)]

    async def types(self, *, after: int = 0) -> list[str]:
        return [event.type for event in await self.events()][after:]

    async def session(self) -> Session:
        return (await self.context().sessions.load(AT)).state

    async def texts(self) -> list[str]:
        """The text of every message, in order."""
        return [
            getattr(line.message, "text", "") for line in (await self.session()).transcript.lines
        ]

    def observe(self, *observations: Observation) -> None:
        """Let the tools service answer with these observations from now on."""
        body = json.dumps({"data": ContextSample(observations=observations).wire()}).encode()

        async def answer(_body: bytes) -> bytes:
            return body

        self.answer(answer)

    def answer(self, answerer: Callable[[bytes], Awaitable[bytes]] | None) -> None:
        assert isinstance(self.eventlog.requests, MemoryRequests)
        self.eventlog.requests.answerers.clear()
        if answerer is not None:
            self.eventlog.requests.answerers[subjects.observe("default")] = answerer

    @property
    def wakes(self) -> list[MemoryMessage]:
        assert isinstance(self.eventlog.wakes, MemoryWakes)
        return self.eventlog.wakes.queue.messages

    async def wake(self, at: Address = AT) -> None:
        await self.eventlog.wakes.wake(at)

    async def prompt(self, id_: str, text: str) -> None:
        """Admit a prompt, and drain until it is answered."""
        await self.write(admitted(id_, text))
        await self.drain()

    async def redeliver_until_gone(self) -> None:
        """Run a consumer, and deliver the session's wake again and again until nobody keeps it."""
        async with run_consumer(WakeConsumer(self.context())):
            while self.wakes:
                await asyncio.sleep(0.01)
                for wake in self.wakes:
                    wake.expire()

    async def drain(self, runner: str = "run_a") -> None:
        """Wake the session, and run one consumer until no wake is left."""
        await self.wake()
        async with run_consumer(WakeConsumer(self.context(runner))):
            await wait_until(lambda: not self.wakes)


def answer_after_first_ping(world: World, instance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an instance miss one ping and answer all others, as one that reconnects does."""
    liveness = world.eventlog.liveness
    assert isinstance(liveness, MemoryLiveness)
    ping = liveness.ping

    async def ping_and_answer(pinged: str, *, timeout_s: float) -> PingResult:
        life = await ping(pinged, timeout_s=timeout_s)
        if pinged == instance:
            await liveness.start_answering(instance)
        return life

    monkeypatch.setattr(liveness, "ping", ping_and_answer)


@asynccontextmanager
async def run_consumer(consumer: WakeConsumer) -> AsyncIterator[None]:
    task = asyncio.create_task(consumer.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await consumer.shutdown()


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait, for a bounded time, until a condition holds."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    provider, memory = Provider(), memory_eventlog()
    log = WatchedLog(memory.status)
    app = Starlette(routes=[Route("/v1/chat/completions", provider.complete, methods=["POST"])])
    config = {
        "default_model": "acme/fast",
        "provider": {
            "acme": {
                "protocol": "openai-chat",
                "base_url": "http://acme/v1",
                "model": {"fast": {"id": "fast-1", "cost": {"input": 1, "output": 2}}},
            }
        },
        "agent": {"build": {"system": "Be careful."}},
    }
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport) as client:
        world = World(
            replace(memory, log=log, broadcasts=log, shards=log),
            log,
            provider,
            client,
            config,
        )
        world.observe(DATE)
        await world.write(CREATED)
        yield world


LONG = "sail " * 2400
"""About 3,000 tokens: one fits a small window, two do not."""


def events_of(events: list[SessionEvent], kind: type[E]) -> list[E]:
    """The events of a kind."""
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture
def small(world: World) -> World:
    """A world whose model has a small window."""
    world.config["provider"]["acme"]["model"]["fast"] |= {"context": 10_000, "output": 500}
    world.config["compaction"] = {
        "buffer": 5_000,
        "keep_tokens": 100,
        "summary_tokens": 400,
        "calibrate": False,
    }
    return world
