"""Requests within a process: they find their responder, keep its grants, and outlive their caller."""

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar

import pytest

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.local_requests import LocalRequests, LocalResponders
from fairlead_schema import subjects

PROMPT = subjects.api("*", "session.prompt")
WHO: ContextVar[str] = ContextVar("who", default="nobody")


async def echo(subject: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
    return b"|".join((subject.encode(), repr(headers).encode(), body))


@pytest.fixture
def responders() -> LocalResponders:
    return LocalResponders()


async def ask(requests: LocalRequests, subject: str, body: bytes = b"") -> bytes:
    responder = requests.find(subject)
    assert responder is not None
    return await responder.answer(subject, {"a": "b"}, body)


async def test_a_request_reaches_the_responder_of_its_subject(responders: LocalResponders) -> None:
    responders.requests_of("ingest").serve(PROMPT, echo)
    gateway = responders.requests_of("gateway")

    answer = await ask(gateway, subjects.api("acme", "session.prompt"), b"body")

    assert answer == b"fairlead.api.acme.session.prompt|{'a': 'b'}|body"
    assert gateway.find(subjects.api("acme", "session.create")) is None
    assert gateway.find("fairlead.api") is None
    assert gateway.find("fairlead.api.acme.session.prompt.more") is None


async def test_what_nats_would_refuse_is_not_answered_here(responders: LocalResponders) -> None:
    """The projector may recheck asks and may not prompt: NATS says so, and so does the process."""
    ingest = responders.requests_of("ingest")
    ingest.serve(PROMPT, echo)
    ingest.serve(subjects.api("*", "ask.expire"), echo)
    responders.requests_of("tools").serve(subjects.observe("default"), echo)
    projector, runner = responders.requests_of("projector"), responders.requests_of("runner")

    assert projector.find(subjects.api("acme", "session.prompt")) is None
    assert projector.find(subjects.api("acme", "ask.expire")) is not None
    assert projector.find(subjects.observe("default")) is None
    assert runner.find(subjects.observe("default")) is not None
    with pytest.raises(AssertionError):
        projector.serve(PROMPT, echo)


async def test_a_responder_that_stops_finishes_its_requests_and_takes_no_more(
    responders: LocalResponders,
) -> None:
    release = asyncio.Event()

    async def respond(_subject: str, _headers: Mapping[str, str] | None, _body: bytes) -> bytes:
        await release.wait()
        return b"late"

    stop = responders.requests_of("ingest").serve(PROMPT, respond)
    gateway, subject = responders.requests_of("gateway"), subjects.api("acme", "session.prompt")
    asked = asyncio.create_task(ask(gateway, subject))
    await asyncio.sleep(0)

    stopped = asyncio.ensure_future(stop())
    await asyncio.sleep(0)
    assert gateway.find(subject) is None
    assert not stopped.done()
    release.set()

    await stopped
    assert await asked == b"late"


async def test_a_caller_that_gives_up_does_not_stop_the_responder(
    responders: LocalResponders,
) -> None:
    done = asyncio.Event()

    async def respond(_subject: str, _headers: Mapping[str, str] | None, _body: bytes) -> bytes:
        await asyncio.sleep(0.01)
        done.set()
        return b""

    responders.requests_of("ingest").serve(PROMPT, respond)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await ask(responders.requests_of("gateway"), subjects.api("acme", "session.prompt"))

    async with asyncio.timeout(5):
        await done.wait()


async def test_a_responder_runs_in_the_context_in_which_it_began_to_serve(
    responders: LocalResponders,
) -> None:
    """As a subscription does: nothing of the caller leaks into the work that it asks for."""

    async def respond(_subject: str, _headers: Mapping[str, str] | None, _body: bytes) -> bytes:
        return WHO.get().encode()

    token = WHO.set("ingest")
    responders.requests_of("ingest").serve(PROMPT, respond)
    WHO.reset(token)
    WHO.set("gateway")

    subject = subjects.api("acme", "session.prompt")
    assert await ask(responders.requests_of("gateway"), subject) == b"ingest"


async def test_a_responder_that_fails_is_an_answer_that_never_came(
    responders: LocalResponders,
) -> None:
    async def respond(_subject: str, _headers: Mapping[str, str] | None, _body: bytes) -> bytes:
        raise RuntimeError("defect")

    responders.requests_of("ingest").serve(PROMPT, respond)

    with pytest.raises(LogUnavailable):
        await ask(responders.requests_of("gateway"), subjects.api("acme", "session.prompt"))
