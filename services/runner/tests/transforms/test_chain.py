"""P-20: transforms between the built request and its dispatch, with every way in which one can fail."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_runner.metrics import TRANSFORMS
from fairlead_schema.events import (
    AttemptDispatched,
    CompactionFailed,
    ExecutionClaimed,
    ExecutionReleased,
    InterruptRequested,
)
from services.runner.tests.conftest import SYSTEM, World, admitted, error_reply, events_of

Answer: TypeAlias = Callable[[bytes], Awaitable[bytes]]


async def register(world: World, name: str, answer: Answer | None, **fields: Any) -> None:  # noqa: ANN401
    subject = f"fairlead.app.default.{name}"
    body = {"name": f"acme/{name}", "version": "1.0", "subject": subject, "parts": ["system"]}
    key = body["name"].encode().hex()  # type: ignore[attr-defined]
    await world.eventlog.transforms.put("default", key, json.dumps(body | fields).encode())
    assert isinstance(world.eventlog.requests, MemoryRequests)
    world.eventlog.requests.answerers.pop(subject, None)
    if answer is not None:
        world.eventlog.requests.answerers[subject] = answer


def answering(**change: Any) -> Answer:  # noqa: ANN401
    async def answer(_body: bytes) -> bytes:
        return json.dumps({"data": change}).encode()

    return answer


def raw(body: bytes) -> Answer:
    async def answer(_body: bytes) -> bytes:
        return body

    return answer


async def hang(_body: bytes) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError("never answered")


def append_system(text: str) -> Answer:
    async def answer(body: bytes) -> bytes:
        system = [*json.loads(body)["system"], text]
        return json.dumps({"data": {"system": system}}).encode()

    return answer


async def attempts(world: World) -> list[AttemptDispatched]:
    return events_of(await world.events(), AttemptDispatched)


async def outcomes(world: World) -> list[tuple[str, str, str]]:
    uses = (await attempts(world))[-1].transforms or ()
    return [(use.name, use.version, use.outcome) for use in uses]


def count(outcome: str) -> float:
    return float(TRANSFORMS.labels(outcome)._value.get())  # noqa: SLF001


async def test_without_a_transform_nothing_is_asked_and_nothing_is_recorded(world: World) -> None:
    await world.prompt("msg_1", "hello")

    assert (await attempts(world))[0].transforms is None
    assert "transforms" not in (await attempts(world))[0].wire()


async def test_turns_read_no_registrations_while_none_has_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = world.eventlog.transforms.get_all_tenants

    async def counting() -> dict[str, dict[str, bytes]]:
        nonlocal reads
        reads += 1
        return await read()

    monkeypatch.setattr(world.eventlog.transforms, "get_all_tenants", counting)
    chain = world.context().transforms

    for tenant in ("default", "acme", "default"):
        assert await chain.of(tenant) == ()

    assert reads == 1


async def test_transforms_run_in_their_declared_order_and_are_recorded(world: World) -> None:
    await register(world, "b", append_system("second"), order=5, version="2.1")
    await register(world, "a", append_system("third"), order=5 + 1)
    await register(world, "z", append_system("first"), order=-1)

    await world.prompt("msg_1", "hello")

    assert world.provider.messages()[0] == ("system", f"{SYSTEM}\nfirst\nsecond\nthird")
    assert await outcomes(world) == [
        ("acme/z", "1.0", "applied"),
        ("acme/b", "2.1", "applied"),
        ("acme/a", "1.0", "applied"),
    ]


async def test_messages_parameters_and_headers_reach_the_provider(world: World) -> None:
    async def redact(body: bytes) -> bytes:
        messages = json.loads(body)["messages"]
        messages[-1]["content"][0]["text"] = "[redacted]"
        change = {
            "messages": messages,
            "parameters": {"temperature": 0.25, "options": {"seed": 7}},
            "headers": {"x-acme": "yes"},
        }
        return json.dumps({"data": change}).encode()

    await register(world, "all", redact, parts=["messages", "parameters", "headers"])

    await world.prompt("msg_1", "my secret")

    sent = world.provider.requests[-1]
    assert (sent["temperature"], sent["seed"]) == (0.25, 7)
    assert world.provider.headers[-1]["x-acme"] == "yes"
    assert world.provider.messages()[-1] == ("user", "[redacted]")
    assert "my secret" in await world.texts(), "the log keeps what was said"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (hang, "timeout"),
        (None, "unreachable"),
        (raw(b"garbage"), "malformed"),
        (raw(b"{}"), "malformed"),
        (raw(b'{"data":{"system":7}}'), "malformed"),
        (raw(b'{"error":{"_tag":"Boom","message":"token t0psecret"}}'), "error"),
        (raw(json.dumps({"data": {"system": ["x" * 10_000_000]}}).encode()), "too-large"),
        (answering(headers={"authorization": "t0psecret"}), "refused"),
    ],
)
async def test_a_failed_transform_is_left_out_or_withholds_the_request(
    world: World, caplog: pytest.LogCaptureFixture, answer: Answer | None, outcome: str
) -> None:
    """Open: the request goes out as it was. Closed: the input stays pending, and nothing is sent."""
    before = count(outcome)
    await register(world, "x", answer, timeoutMs=30)
    await world.prompt("msg_1", "hello")

    assert await outcomes(world) == [("acme/x", "1.0", outcome)]
    assert world.provider.messages()[0] == ("system", SYSTEM)

    await register(world, "x", answer, timeoutMs=30, onFailure="closed")
    await world.prompt("msg_2", "more")

    session = await world.session()
    assert (session.execution.rested, len(session.inbox.pending)) == ("context-unavailable", 1)
    released = events_of(await world.events(), ExecutionReleased)[-1]
    assert released.detail is not None
    assert released.detail.startswith(f"transform acme/x: {outcome}: ")
    assert len(world.provider.requests) == 1
    assert count(outcome) == before + 2
    lines = [r for r in caplog.records if r.name.endswith("transforms.chain")]
    assert [line.levelno for line in lines] == [logging.WARNING, logging.ERROR]
    assert "t0psecret" not in caplog.text + str(await world.events())

    await register(world, "x", append_system("back"), onFailure="closed")
    await world.drain()

    assert (await world.session()).execution.rested == "idle"
    assert world.provider.messages()[0] == ("system", f"{SYSTEM}\nback")


async def test_while_a_transform_fails_closed_repeated_tries_leave_the_log_as_it_is(
    world: World,
) -> None:
    await register(world, "x", None, onFailure="closed")
    await world.prompt("msg_1", "hello")
    length = len(await world.events())

    await world.drain()
    await world.drain()

    assert len(await world.events()) == length


async def test_a_late_answer_is_never_used(world: World) -> None:
    """The answer to the first question comes while the second one waits: it must not answer that."""
    asked = 0

    async def answer(_body: bytes) -> bytes:
        nonlocal asked
        asked += 1
        number = asked
        if number == 1:
            await asyncio.sleep(0.05)
        return json.dumps({"data": {"system": [f"answer {number}"]}}).encode()

    await register(world, "slow", answer, timeoutMs=10)
    await world.prompt("msg_1", "one")
    await asyncio.sleep(0.06)
    await world.prompt("msg_2", "two")

    systems = [world.provider.messages(turn)[0][1] for turn in (0, 1)]
    assert systems == [SYSTEM, "answer 2"]


async def test_all_transforms_together_have_one_deadline(world: World) -> None:
    world.config["runner"] = {"transforms_timeout_s": 0.05}
    for name in ("a", "b", "c"):
        await register(world, name, hang, timeoutMs=10_000)

    await world.prompt("msg_1", "hello")

    assert [outcome for _, _, outcome in await outcomes(world)] == ["timeout"] * 3


async def test_a_prompt_during_a_transform_makes_the_boundary_start_over(world: World) -> None:
    """The commit is fenced: what was transformed before the prompt is not sent."""
    asked: list[int] = []

    async def answer(body: bytes) -> bytes:
        messages = json.loads(body)["messages"]
        asked.append(len(messages))
        if len(asked) == 1:
            await world.write(admitted("msg_2", "wait, also this"))
        return b'{"data":null}'

    await register(world, "x", answer, parts=["messages"])
    await world.prompt("msg_1", "hello")

    assert len(asked) == 2
    assert len(world.provider.requests) == 1
    assert await outcomes(world) == [("acme/x", "1.0", "unchanged")]


@pytest.mark.parametrize("is_owned", [False, True], ids=["first turn", "later turn"])
async def test_an_interrupt_during_a_transform_ends_it_at_once(
    world: World, *, is_owned: bool
) -> None:
    """The transform would take ten seconds. Nobody is nudged before the claim is in the log."""
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def answer(_body: bytes) -> bytes:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError("never answered")

    world.config["runner"] = {"transforms_timeout_s": 10}
    await register(world, "x", answer, timeoutMs=10_000)
    if is_owned:
        await world.write(ExecutionClaimed(generation=1, runner=world.context().runner))
    await world.write(admitted("msg_1", "hello"))

    draining = asyncio.create_task(world.drain())
    await asyncio.wait_for(asked.wait(), 5)
    await world.write(InterruptRequested())
    await asyncio.wait_for(draining, 5)

    assert cancelled.is_set()
    assert world.provider.requests == []
    # Without an owner the interrupt itself has put the session to rest.
    rests = [rest.reason for rest in events_of(await world.events(), ExecutionReleased)]
    assert rests == (["interrupted"] if is_owned else [])


async def test_a_change_of_a_registration_counts_from_the_next_request(world: World) -> None:
    context = world.context()
    await world.eventlog.transforms.watch(context.transforms.registered.forget)
    assert await context.transforms.of("default") == ()
    await register(world, "x", append_system("x"))
    assert [found.name for found in await context.transforms.of("default")] == ["acme/x"]
    assert await context.transforms.of("another") == (), "a registration is of one tenant"
    await world.eventlog.transforms.remove("default", b"acme/x".hex())
    assert await context.transforms.of("default") == ()


async def test_an_operator_can_switch_the_transforms_of_services_off(world: World) -> None:
    world.config["runner"] = {"service_transforms": False}
    await register(world, "x", append_system("x"))

    await world.prompt("msg_1", "hello")

    assert (await attempts(world))[0].transforms is None


async def test_a_header_that_a_provider_repeats_is_neither_logged_nor_stored(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.provider.replies.append(error_reply(400, "bad header: hush-hush-value"))
    await register(world, "h", answering(headers={"x-plain": "hush-hush-value"}), parts=["headers"])

    await world.prompt("msg_1", "hello")

    assert world.provider.headers[-1]["x-plain"] == "hush-hush-value"
    assert "hush-hush" not in caplog.text + str(await world.events())


async def test_the_fingerprint_and_the_estimate_are_of_the_request_that_was_sent(
    world: World,
) -> None:
    await world.prompt("msg_1", "one")
    await register(world, "x", append_system("word " * 400))
    await world.prompt("msg_2", "two")

    before, after = await attempts(world)
    assert before.request_hash is not None
    assert after.request_hash is not None
    assert before.request_hash.split()[0] != after.request_hash.split()[0], "the system changed"
    assert before.estimate is not None
    assert after.estimate is not None
    assert after.estimate > before.estimate + 400


async def test_a_request_for_a_summary_passes_the_transforms_too(small: World) -> None:
    """What a transform hides from a provider, a compaction must not show."""
    purposes: list[str] = []

    async def answer(body: bytes) -> bytes:
        purposes.append(json.loads(body)["purpose"])
        return b'{"data":null}'

    await small.prompt("msg_1", "sail " * 2400)
    await register(small, "x", answer, parts=["messages"])
    await small.prompt("msg_2", "sail " * 2400)
    assert purposes == ["compaction", "turn"]


async def test_no_summary_is_asked_for_while_a_transform_withholds_requests(small: World) -> None:
    await small.prompt("msg_1", "sail " * 2400)
    await register(small, "x", None, parts=["messages"], onFailure="closed")
    await small.prompt("msg_2", "sail " * 2400)

    assert len(small.provider.requests) == 1
    failed = events_of(await small.events(), CompactionFailed)
    assert "transform acme/x: unreachable" in failed[-1].message
    assert (await small.session()).execution.rested == "context-unavailable"
