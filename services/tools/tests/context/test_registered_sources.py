"""Sources of other services: registered once, asked in parallel, and never trusted."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.memory.eventlog import memory_eventlog
from fairlead_eventlog.memory.registers import MemorySources
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_schema.context import (
    ContextSample,
    ObserveContext,
    ObservedSource,
    RemoveSource,
    SourceChanged,
    SourceRegistration,
    UnavailableSource,
)
from fairlead_schema.errors import Conflict, InvalidRequest, LimitReached
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_session.turn import epoch
from fairlead_tools.context.observe import Observer
from fairlead_tools.context.registered import SOURCES_MAX, RegisteredSources
from services.tools.tests.conftest import answer_of

REQUEST = ObserveContext(location=LocationRef(directory="/w"), agent="build")
WEATHER = {"value": 1, "baseline": "It rains.", "update": "Now it rains.", "removed": "No weather."}


@pytest.fixture
def eventlog() -> EventLog:
    return memory_eventlog()


@pytest.fixture
def sources(eventlog: EventLog) -> RegisteredSources:
    return RegisteredSources(eventlog, 1.0)


def source(key: str, timeout_ms: int = 1000) -> SourceRegistration:
    return SourceRegistration(
        key=key, subject=f"fairlead.app.default.{key.replace('/', '.')}", timeout_ms=timeout_ms
    )


def set_loader(
    eventlog: EventLog, key: str, answer: object, wait: Callable[[], Awaitable[Any]] | None = None
) -> None:
    """Set the answer of a loader."""

    async def answer_request(_body: bytes) -> bytes:
        if wait is not None:
            await wait()
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers[source(key).subject] = answer_request


async def test_registered_sources_come_in_key_order_and_are_asked_at_every_look(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-19, F-50: loaders run in parallel, so the slowest one sets the time."""
    together = asyncio.Barrier(2)
    for key in ("zoo/b", "acme/a"):
        await sources.register("default", source(key))
        set_loader(eventlog, key, {"data": {**WEATHER, "value": key}}, together.wait)

    first = await sources.observe(REQUEST)
    set_loader(eventlog, "acme/a", {"data": {**WEATHER, "value": 2}})
    set_loader(eventlog, "zoo/b", {"data": {**WEATHER, "value": 3}})
    second = await sources.observe(REQUEST)

    assert [
        (observation.key, observation.value)
        for observation in first
        if isinstance(observation, ObservedSource)
    ] == [
        ("acme/a", "acme/a"),
        ("zoo/b", "zoo/b"),
    ]
    assert [
        observation.value for observation in second if isinstance(observation, ObservedSource)
    ] == [2, 3]


async def test_nothing_registered_adds_nothing(sources: RegisteredSources) -> None:
    """F-22: an empty register adds no observation."""
    assert await sources.observe(REQUEST) == ()


async def test_a_loader_is_told_what_is_observed(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-50: the request has the location, the agent and the read directories."""
    bodies: list[bytes] = []

    async def record_body(body: bytes) -> bytes:
        bodies.append(body)
        return b'{"data": null}'

    await sources.register("default", source("acme/a"))
    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers["fairlead.app.default.acme.a"] = record_body

    await sources.observe(REQUEST)

    assert json.loads(bodies[0]) == {
        "location": {"directory": "/w"},
        "tenant": "default",
        "agent": "build",
        "touched": [],
    }


async def test_a_second_service_with_one_key_is_refused(sources: RegisteredSources) -> None:
    """F-20: the error is typed; the first service stays and may register again."""
    first = source("acme/a")
    other = SourceRegistration(key="acme/a", subject="fairlead.app.default.elsewhere")

    assert await sources.register("default", first) == first
    assert await sources.register("default", first) == first
    with pytest.raises(Conflict) as refusal:
        await sources.register("default", other)

    assert refusal.value.body.resource == "acme/a"
    body = await answer_of(
        SourceRegistration, other.model_dump_json().encode(), partial(sources.register, "default")
    )
    assert body["error"]["_tag"] == "ConflictError"


@pytest.mark.parametrize(
    ("key", "subject", "field"),
    [
        ("core/date", "acme.date", "key"),
        ("acme/a", "fairlead.api.default.session.delete", "subject"),
        ("acme/a", "$JS.API.STREAM.DELETE.LOG-0", "subject"),
        ("acme/a", "_INBOX.x", "subject"),
    ],
)
async def test_what_is_ours_cannot_be_registered(
    sources: RegisteredSources, key: str, subject: str, field: str
) -> None:
    """F-20: Fairlead's own keys and subjects are refused, where a request could be a command."""
    with pytest.raises(InvalidRequest) as refusal:
        await sources.register("default", SourceRegistration(key=key, subject=subject))

    assert refusal.value.body.field == field


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"key": "a", "subject": "s"}',
        b'{"key": "a/b"}',
        b'{"key": "a/b", "subject": ""}',
        b'{"key": "a/b", "subject": "a.*"}',
        b'{"key": "a/b", "subject": "a b"}',
        b'{"key": "a/b", "subject": "a..b"}',
        b'{"key": "a/b", "subject": "s", "timeoutMs": 0}',
        b'{"key": "a/b", "subject": "s", "timeoutMs": 10000000}',
    ],
)
async def test_what_is_no_registration_is_refused_with_a_typed_error(
    sources: RegisteredSources, body: bytes
) -> None:
    """F-01, F-20: every malformed registration gets an answer."""
    answer = await answer_of(SourceRegistration, body, partial(sources.register, "default"))

    assert answer["error"]["_tag"] == "InvalidRequestError"


async def test_sessions_wait_only_for_a_source_that_says_so(sources: RegisteredSources) -> None:
    """F-06: a missing service delays the first turn only when its source is required."""
    await sources.register("default", source("acme/a"))
    await sources.register("default", source("acme/b").model_copy(update={"required": True}))

    sample = ContextSample(observations=await sources.observe(REQUEST))

    assert epoch.initialise(sample) == epoch.Blocked(("acme/b",))


async def test_there_is_a_limit(sources: RegisteredSources) -> None:
    """F-20: a loop that registers sources cannot fill the sample."""
    for at in range(SOURCES_MAX):
        await sources.register("default", source(f"acme/{at}"))

    with pytest.raises(LimitReached):
        await sources.register("default", source("acme/more"))
    await sources.register("default", source("acme/0"))


async def test_what_is_taken_back_follows_the_removal_rules(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-11, F-21: the sample lacks the source, and the model reads its removal text."""
    set_loader(eventlog, "acme/a", {"data": WEATHER})
    await sources.register("default", source("acme/a"))
    baseline = epoch.initialise(ContextSample(observations=await sources.observe(REQUEST)))
    assert isinstance(baseline, epoch.Baseline)

    remaining = await sources.remove("default", RemoveSource(key="acme/a"))

    assert remaining.sources == ()
    sample = ContextSample(observations=await sources.observe(REQUEST))
    assert epoch.reconcile(baseline.snapshot, sample) == epoch.Updated("No weather.", {})
    assert await sources.remove("default", RemoveSource(key="acme/a")) == remaining


async def test_a_loader_may_say_that_there_is_nothing_now(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-11: the source is absent, which is not unavailable."""
    await sources.register("default", source("acme/a"))
    set_loader(eventlog, "acme/a", {"data": None})

    assert await sources.observe(REQUEST) == ()


async def test_a_loader_that_is_gone_or_silent_makes_its_source_unavailable(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-10, F-21: a dead service stays registered, and each source has its own timeout."""
    await sources.register("default", source("acme/gone"))
    await sources.register("default", source("acme/hung", timeout_ms=20))
    set_loader(eventlog, "acme/hung", {"data": WEATHER}, asyncio.Event().wait)

    absent, hung = await sources.observe(REQUEST)

    sample = ContextSample(observations=(absent, hung))
    assert isinstance(epoch.initialise(sample), epoch.Baseline)
    assert isinstance(absent, UnavailableSource)
    assert isinstance(hung, UnavailableSource)
    assert (absent.why, hung.why) == ("unreachable", "timeout")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "malformed"),
        (b"rubbish", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "malformed"),
        (b"{}", "malformed"),
        ({"data": 7}, "malformed"),
        ({"data": {}}, "malformed"),
        ({"data": {**WEATHER, "baseline": ""}}, "malformed"),
        ({"data": {**WEATHER, "update": ""}}, "malformed"),
        ({"data": {**WEATHER, "removed": ""}}, "malformed"),
        ({"data": {**WEATHER, "value": float("nan")}}, "malformed"),
        ({"data": {**WEATHER, "value": [{"a": float("inf")}]}}, "malformed"),
        ({"data": {**WEATHER, "baseline": "a\0b"}}, "malformed"),
        ({"data": {**WEATHER, "shape": "two"}}, "malformed"),
        (b'{"data": {"baseline": "\\ud800", "update": "u"}}', "malformed"),
        (b'{"data": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "malformed"),
        ({"data": {**WEATHER, "baseline": "x" * 70_000}}, "too-large"),
        ({"error": {"_tag": "UnknownError", "message": "not today"}}, "unreachable"),
    ],
)
async def test_rubbish_is_unavailable_with_a_typed_reason(
    eventlog: EventLog, sources: RegisteredSources, answer: object, why: str
) -> None:
    """F-17, F-22: a bad answer of one service affects neither the others nor the session."""
    await sources.register("default", source("acme/bad"))
    await sources.register("default", source("acme/good"))
    set_loader(eventlog, "acme/bad", answer)
    set_loader(eventlog, "acme/good", {"data": WEATHER})

    bad, good = await sources.observe(REQUEST)

    assert isinstance(bad, UnavailableSource)
    assert bad.why == why
    assert bad.reason
    assert isinstance(good, ObservedSource)


async def test_a_registration_outlives_the_process_that_took_it(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-50: every worker asks the same sources, also after a restart."""
    set_loader(eventlog, "acme/a", {"data": WEATHER})
    await sources.register("default", source("acme/a"))

    (observation,) = await RegisteredSources(eventlog, 1.0).observe(REQUEST)

    assert observation.key == "acme/a"


async def test_a_tenant_observes_only_its_own_sources(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """B9: a registration of one tenant never reaches the sessions of another."""
    set_loader(eventlog, "acme/a", {"data": WEATHER})
    await sources.register("default", source("acme/a"))

    other = REQUEST.model_copy(update={"tenant": "rival"})

    assert await sources.observe(other) == ()
    with pytest.raises(InvalidRequest, match=r"must begin with fairlead\.app\.rival\."):
        await sources.register("rival", source("acme/a"))


class FlakySources(MemorySources):
    """A register whose reads a test can make fail."""

    away = False

    @override
    async def get_all(self, pool: str) -> dict[str, bytes]:
        if self.away:
            raise LogUnavailable("no leader")
        return await super().get_all(pool)


async def test_a_register_that_cannot_be_read_removes_nothing(
    eventlog: EventLog, tmp_path: Path
) -> None:
    """F-10, F-37: the last known sources stay; without any, the whole sample is refused."""
    flaky = FlakySources()
    eventlog = replace(eventlog, sources=flaky)
    set_loader(eventlog, "acme/a", {"data": WEATHER})
    sources = RegisteredSources(eventlog, 1.0, fresh_s=0.0)
    await sources.register("default", source("acme/a"))
    await sources.observe(REQUEST)
    flaky.away = True

    (observation,) = await sources.observe(REQUEST)
    request = ObserveContext(location=LocationRef(directory=str(tmp_path)))
    blind = Observer(Config(), RegisteredSources(eventlog, 1.0))
    answer = await answer_of(
        ObserveContext, request.model_dump_json(by_alias=True).encode(), blind.observe
    )

    assert observation.key == "acme/a"
    assert answer["error"]["_tag"] == "ServiceUnavailableError"


async def test_a_registration_that_nobody_can_read_is_left_out(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """F-18: a newer release may have written the registration."""
    await eventlog.sources.add("default", "acme/odd", b"{}")
    set_loader(eventlog, "acme/a", {"data": WEATHER})
    await sources.register("default", source("acme/a"))

    assert [observation.key for observation in await sources.observe(REQUEST)] == ["acme/a"]


async def test_other_services_speak_after_the_built_in_sources(
    eventlog: EventLog, sources: RegisteredSources, tmp_path: Path
) -> None:
    """F-25: the keys do not matter."""
    set_loader(eventlog, "aaa/a", {"data": WEATHER})
    await sources.register("default", source("aaa/a"))
    request = ObserveContext(location=LocationRef(directory=str(tmp_path)))

    sample = await Observer(Config(), sources).observe(request)

    keys = [observation.key for observation in sample.observations]
    assert keys[:2] == ["core/environment", "core/date"]
    assert keys[-1] == "aaa/a"


def counting_loader(eventlog: EventLog, key: str) -> list[int]:
    """A loader whose value is the number of its answers."""
    asked: list[int] = []

    async def answer(_body: bytes) -> bytes:
        asked.append(len(asked) + 1)
        return json.dumps({"data": {**WEATHER, "value": asked[-1]}}).encode()

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers[source(key).subject] = answer
    return asked


async def values(sources: RegisteredSources, request: ObserveContext = REQUEST) -> list[object]:
    observed = await sources.observe(request)
    return [found.value for found in observed if isinstance(found, ObservedSource)]


async def test_a_source_that_announces_its_changes_is_asked_only_after_one(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """P-14: a second worker hears of the change too, and another location has its own answer."""
    other = RegisteredSources(eventlog, 1.0)
    for worker in (sources, other):
        await worker.watch()
    counting_loader(eventlog, "acme/a")
    await sources.register("default", source("acme/a").model_copy(update={"fresh_ms": 60_000}))
    elsewhere = REQUEST.model_copy(update={"location": LocationRef(directory="/elsewhere")})

    assert [await values(sources) for _ in range(3)] == [[1]] * 3
    assert await values(sources, elsewhere) == [2]
    assert [await values(other) for _ in range(2)] == [[3]] * 2

    await other.announce("default", SourceChanged(key="acme/a"))

    assert [await values(sources) for _ in range(2)] == [[4]] * 2
    assert await values(other) == [5]
    await sources.announce("rival", SourceChanged(key="acme/a"))
    assert await values(sources) == [4], "a change is of one tenant"


async def test_an_answer_to_a_question_before_a_change_is_not_used_again(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """P-14: nobody knows whether the answer is older or newer than the change."""
    await sources.watch()
    asked = counting_loader(eventlog, "acme/a")
    await sources.register("default", source("acme/a").model_copy(update={"fresh_ms": 60_000}))
    assert isinstance(eventlog.requests, MemoryRequests)
    load = eventlog.requests.answerers[source("acme/a").subject]

    async def announce_first(body: bytes) -> bytes:
        answer = await load(body)
        if len(asked) == 1:
            await sources.announce("default", SourceChanged(key="acme/a"))
        return answer

    eventlog.requests.answerers[source("acme/a").subject] = announce_first

    assert [await values(sources) for _ in range(3)] == [[1], [2], [2]]


async def test_an_answer_counts_for_its_time_and_a_failure_never(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """P-14: unavailable is not a value: the source is asked again at the next observation."""
    await sources.watch()
    await sources.register("default", source("acme/a").model_copy(update={"fresh_ms": 1}))
    asked = counting_loader(eventlog, "acme/a")
    await values(sources)
    await asyncio.sleep(0.01)
    assert await values(sources) == [2]

    await asyncio.sleep(0.01)
    set_loader(eventlog, "acme/a", b"garbage")
    (failed,) = await sources.observe(REQUEST)
    assert isinstance(failed, UnavailableSource)
    set_loader(eventlog, "acme/a", {"data": {**WEATHER, "value": 9}})
    assert await values(sources) == [9]
    assert asked == [1, 2]


async def test_without_news_of_changes_every_observation_asks(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """P-14: a worker that hears nothing keeps nothing; after a reconnection it forgets everything."""
    await sources.register("default", source("acme/a").model_copy(update={"fresh_ms": 60_000}))
    counting_loader(eventlog, "acme/a")
    assert [await values(sources) for _ in range(2)] == [[1], [2]]

    heard: list[Callable[[str | None, str | None], None]] = []
    assert isinstance(eventlog.sources, MemorySources)
    await sources.watch()
    heard += eventlog.sources._watchers  # noqa: SLF001
    assert [await values(sources) for _ in range(2)] == [[3], [3]]
    heard[0](None, None)
    assert await values(sources) == [4]


async def test_a_registration_without_the_new_field_has_the_bytes_of_earlier_releases(
    eventlog: EventLog, sources: RegisteredSources
) -> None:
    """P-14: a service that registers again after an upgrade is no conflict."""
    await sources.register("default", source("acme/a"))

    stored = (await eventlog.sources.get_all("default"))["acme/a"]
    assert json.loads(stored).keys() == {"key", "subject", "timeoutMs", "required"}
