"""The simulated provider over real HTTP with the real client: every answer and every fault."""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from time import perf_counter
from typing import Any

import httpx
import orjson
import pytest

from fairlead_cli.sim.app import SimSettings
from fairlead_cli.sim.script import filler_text
from fairlead_cli.sim.server import serve
from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_schema.provider.events import (
    ProviderEvent,
    ProviderFailure,
    ReasoningChunk,
    StepFinish,
    TextChunk,
    ToolCall,
)
from fairlead_schema.provider.request import (
    AssistantTurn,
    ModelRequest,
    SystemTurn,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    ToolTurn,
    UserTurn,
)

pytestmark = pytest.mark.integration


class Sim:
    """A running simulated provider and one client of it."""

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        self.url = url
        self.client = client

    async def send(self, request: ModelRequest, **fields: Any) -> list[ProviderEvent]:  # noqa: ANN401
        endpoint = ProviderEndpoint(**({"protocol": "openai-chat", "base_url": self.url} | fields))
        return [event async for event in stream(self.client, endpoint, request)]

    async def ask(self, text: str, model: str = "fast", **fields: Any) -> list[ProviderEvent]:  # noqa: ANN401
        return await self.send(model_request(text, model), **fields)

    async def failure(self, text: str, model: str = "fast", **fields: Any) -> ProviderFailure:  # noqa: ANN401
        last = (await self.ask(text, model, **fields))[-1]
        assert isinstance(last, ProviderFailure)
        return last

    async def calls(self) -> dict[str, Any]:
        log: dict[str, Any] = (await self.client.get(f"{self.url}/sim/calls")).json()
        return log


def model_request(text: str, model: str = "fast") -> ModelRequest:
    headers = {"X-Session-Id": "ses_1"}
    return ModelRequest(model, turns=(UserTurn((TextPart(text),)),), headers=headers)


def text_of(events: list[ProviderEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextChunk))


@pytest.fixture
async def sim(request: pytest.FixtureRequest) -> AsyncIterator[Sim]:
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = getattr(request, "param", SimSettings())
    server = serve("127.0.0.1", 0, ready=url.set_result, stop=stop, settings=settings)
    task = asyncio.create_task(server)
    async with httpx.AsyncClient(trust_env=False) as client:
        yield Sim(await url, client)
    stop.set()
    await task


async def test_the_default_answer_echoes_the_user(sim: Sim) -> None:
    events = await sim.ask("hello there")

    assert text_of(events) == "You said: hello there"
    end = events[-1]
    assert isinstance(end, StepFinish)
    assert (end.finish, end.usage.output) == ("stop", 4)


async def test_a_long_stream_arrives_whole(sim: Sim) -> None:
    events = await sim.ask("[[sim: chunks=2000]]")

    assert text_of(events) == filler_text(2000)


async def test_reasoning_and_finish_reasons_arrive(sim: Sim) -> None:
    events = await sim.ask("x", "think")
    finishes = [(await sim.ask("x", model))[-1] for model in ("length", "filter")]

    assert any(isinstance(event, ReasoningChunk) for event in events)
    assert [getattr(end, "finish", None) for end in finishes] == ["length", "content-filter"]


async def test_a_tool_loop_with_a_system_update_runs_to_its_end(sim: Sim) -> None:
    prompt = UserTurn((TextPart("""go [[sim: tool=read args='{"path":"a"}' ; answer=done]]"""),))

    first = await sim.send(ModelRequest("fast", turns=(prompt,)))
    call = next(event for event in first if isinstance(event, ToolCall))
    second = await sim.send(
        ModelRequest(
            "fast",
            turns=(
                prompt,
                AssistantTurn((ToolCallPart(call.id, call.name, call.input),)),
                ToolTurn(ToolResultPart(call.id, call.name, "text", "content of a")),
                SystemTurn("the date changed"),
            ),
        )
    )

    assert (call.name, call.input) == ("read", {"path": "a"})
    assert text_of(second) == "done"


async def test_arguments_that_are_not_json_are_an_invalid_call(sim: Sim) -> None:
    events = await sim.ask("[[sim: tool=read args='{oops']]")

    call = next(event for event in events if isinstance(event, ToolCall))
    assert (call.input, call.invalid is not None) == ("{oops", True)


@pytest.mark.parametrize(
    ("model", "kind", "retryable"),
    [
        ("error-400", "invalid-request", False),
        ("error-401", "auth", False),
        ("error-429", "rate-limit", True),
        ("error-500", "server-error", True),
        ("error-503", "overloaded", True),
        ("error-529", "overloaded", True),
        ("overflow", "context-overflow", False),
    ],
)
async def test_a_refusal_is_one_failure(
    sim: Sim, model: str, kind: str, *, retryable: bool
) -> None:
    events = await sim.ask("x", model)

    assert len(events) == 1
    failure = events[0]
    assert isinstance(failure, ProviderFailure)
    assert (failure.kind, failure.retryable, failure.in_stream) == (kind, retryable, False)


async def test_a_rate_limit_says_how_long_to_wait(sim: Sim) -> None:
    assert (await sim.failure("[[sim: status=429 retry_after=7]]")).retry_after_s == 7.0


async def test_a_fault_can_be_over_at_the_next_attempt(sim: Sim) -> None:
    prompt = "[[sim: status=503 times=1 answer=better]]"

    first, second = await sim.failure(prompt), await sim.ask(prompt)

    assert (first.kind, text_of(second)) == ("overloaded", "better")


async def test_a_cleanly_cut_stream_is_truncated_and_not_retryable_after_output(sim: Sim) -> None:
    events = await sim.ask("[[sim: cut=2 answer='a b c d']]")
    early = await sim.failure("[[sim: cut=0]]")

    last = events[-1]
    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable) == ("stream-truncated", False)
    assert text_of(events) == "a b"
    assert (early.kind, early.retryable) == ("stream-truncated", True)


async def test_a_dropped_connection_is_a_network_failure(sim: Sim) -> None:
    assert (await sim.failure("x", "drop")).kind == "network"


async def test_a_stalled_stream_ends_at_the_idle_timeout(sim: Sim) -> None:
    events = await sim.ask("[[sim: stall=1 answer='a b']]", idle_s=0.1)

    last = events[-1]
    assert isinstance(last, ProviderFailure)
    assert (last.kind, last.retryable, text_of(events)) == ("timeout", False, "a")


async def test_a_late_first_byte_is_a_timeout_that_may_be_retried(sim: Sim) -> None:
    failure = await sim.failure("[[sim: first_byte_ms=60000]]", first_byte_s=0.1)

    assert (failure.kind, failure.retryable) == ("timeout", True)


async def test_chunks_may_be_slower_than_the_whole_if_none_is_idle(sim: Sim) -> None:
    events = await sim.ask("[[sim: chunks=5 delay_ms=30]]", idle_s=0.1)

    assert isinstance(events[-1], StepFinish)


async def test_chunks_come_at_their_pace(sim: Sim) -> None:
    start = perf_counter()

    await sim.ask("[[sim: chunks=10 delay_ms=10 first_byte_ms=50]]")

    assert perf_counter() - start >= 0.14


async def test_a_malformed_frame_ends_the_stream(sim: Sim) -> None:
    events = await sim.ask("[[sim: malformed=1 answer='a b']]")

    last = events[-1]
    assert isinstance(last, ProviderFailure)
    assert (last.kind, text_of(events)) == ("malformed-stream", "a")


async def test_an_error_inside_the_stream_is_an_in_stream_failure(sim: Sim) -> None:
    failure = await sim.failure("x", "fail")

    assert (failure.kind, failure.in_stream) == ("server-error", True)


async def test_nobody_listening_is_a_network_failure() -> None:
    with socket.socket() as unused_socket:
        unused_socket.bind(("127.0.0.1", 0))
        port = unused_socket.getsockname()[1]

        async with httpx.AsyncClient(trust_env=False) as client:
            failure = await Sim(f"http://127.0.0.1:{port}", client).failure("x")

    assert (failure.kind, failure.retryable) == ("network", True)


async def test_connections_are_used_again_after_a_finished_turn(sim: Sim) -> None:
    peers: set[object] = set()

    async def note(response: httpx.Response) -> None:
        peers.add(response.extensions["network_stream"].get_extra_info("client_addr"))

    sim.client.event_hooks = {"response": [note]}
    for _ in range(3):
        await sim.ask("x")

    assert len(peers) == 1


async def has_no_connection(client: httpx.AsyncClient) -> bool:
    """Whether the client holds no connection, so that its socket was closed, not parked."""
    pool = client._transport._pool  # type: ignore[attr-defined]  # noqa: SLF001 - no public view
    return not pool.connections


async def test_cancelling_a_stream_closes_its_socket(sim: Sim) -> None:
    started = asyncio.Event()
    endpoint = ProviderEndpoint("openai-chat", sim.url)

    async def consume() -> None:
        async with aclosing(stream(sim.client, endpoint, model_request("x", "stall"))) as events:
            async for _ in events:
                started.set()

    task = asyncio.create_task(consume())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await has_no_connection(sim.client)


async def test_leaving_a_stream_early_closes_its_socket(sim: Sim) -> None:
    endpoint = ProviderEndpoint("openai-chat", sim.url)

    async with aclosing(stream(sim.client, endpoint, model_request("x", "stall"))) as events:
        await anext(events)

    assert await has_no_connection(sim.client)


async def test_many_streams_run_side_by_side(sim: Sim) -> None:
    answers = await asyncio.gather(*(sim.ask(f"[[sim: answer=n{n}]]") for n in range(50)))

    assert [text_of(events) for events in answers] == [f"n{n}" for n in range(50)]


async def test_calls_are_counted_by_session_until_reset(sim: Sim) -> None:
    await sim.ask("one")
    await sim.ask("two")
    await sim.send(ModelRequest("fast", turns=(UserTurn((TextPart("three"),)),)))

    log = await sim.calls()
    await sim.client.post(f"{sim.url}/sim/reset")

    assert (log["total"], log["sessions"]) == (3, {"ses_1": 2})
    assert log["last"][1]["body"]["messages"][0]["content"] == "two"
    assert log["protocols"] == {"openai-chat": 3}
    assert await sim.calls() == {"total": 0, "sessions": {}, "protocols": {}, "last": []}


@pytest.mark.parametrize("sim", [SimSettings(keep=1)], indirect=True)
async def test_only_the_last_bodies_are_kept(sim: Sim) -> None:
    await sim.ask("one")
    await sim.ask("two")

    log = await sim.calls()

    assert (log["total"], len(log["last"])) == (2, 1)


@pytest.mark.parametrize("sim", [SimSettings(api_key="right")], indirect=True)
async def test_an_expected_key_must_be_sent(sim: Sim) -> None:
    wrong = await sim.failure("x", api_key="wrong")
    missing = await sim.failure("x")
    right = await sim.ask("x", api_key="right")

    assert (wrong.kind, missing.status) == ("auth", 401)
    assert isinstance(right[-1], StepFinish)


@pytest.mark.parametrize(
    "body", [b"{nope", b"{}", b'{"model":"m"}', b'{"model":"m","messages":[]}']
)
async def test_a_request_without_model_or_messages_is_refused(sim: Sim, body: bytes) -> None:
    answer = await sim.client.post(f"{sim.url}/v1/chat/completions", content=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_a_bad_directive_is_refused_with_its_reason(sim: Sim) -> None:
    failure = await sim.failure("[[sim: wings=2]]")

    assert (failure.kind, "wings" in failure.message) == ("invalid-request", True)


async def test_an_answer_without_streaming_comes_in_one_piece(sim: Sim) -> None:
    body = {"model": "fast", "messages": [{"role": "user", "content": "hi"}]}

    answer = await sim.client.post(f"{sim.url}/v1/chat/completions", json=body)

    assert answer.json()["choices"][0]["message"]["content"] == "You said: hi"


async def test_stopping_ends_a_stalled_stream() -> None:
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve("127.0.0.1", 0, ready=url.set_result, stop=stop))
    endpoint = ProviderEndpoint("openai-chat", await url)

    async with httpx.AsyncClient(trust_env=False) as client:
        events: list[ProviderEvent] = []
        async for event in stream(client, endpoint, model_request("x", "stall")):
            events.append(event)
            stop.set()
    await task

    assert getattr(events[-1], "kind", None) == "stream-truncated"


async def test_the_command_prints_its_url_and_stops_on_a_signal() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "sim", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    url = orjson.loads(await process.stdout.readline())["url"]

    async with httpx.AsyncClient(trust_env=False) as client:
        events = await Sim(url, client).ask("hi")
    process.send_signal(signal.SIGTERM)

    assert text_of(events) == "You said: hi"
    assert await process.wait() == 0
