"""Health: alive at once, ready when nothing complains; work that is supervised."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette

from fairlead_service.health import Health
from fairlead_service.process import application, main

WAIT_S = 5.0


def client(app: Starlette) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://process")


@asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with app.router.lifespan_context(app), client(app) as http:
        yield http


async def fail_to_connect() -> None:
    raise ConnectionError("no servers")


async def wait_for_readiness(http: httpx.AsyncClient, *, status: int = 200) -> dict[str, object]:
    """The readiness, once it has the wanted status."""
    async with asyncio.timeout(WAIT_S):
        while True:
            answer = await http.get("/readyz")
            if answer.status_code == status:
                break
            await asyncio.sleep(0)
    body: dict[str, object] = answer.json()
    return body


async def test_a_process_without_complaints_is_ready() -> None:
    health = Health()
    health.depend("nats", lambda: None)

    async with client(Starlette(routes=health.routes())) as http:
        answer = await http.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"ready": True, "away": {}, "degraded": {}})


async def test_a_dependency_that_it_can_do_without_leaves_it_ready() -> None:
    """C3: a load balancer keeps a process that serves a part."""
    health = Health()
    health.depend("nats", lambda: None)
    health.want("postgres", lambda: "connection refused")

    async with client(Starlette(routes=health.routes())) as http:
        answer = await http.get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["degraded"] == {"postgres": "connection refused"}


async def test_a_complaint_makes_it_not_ready_but_leaves_it_healthy() -> None:
    health = Health()
    reasons: list[str] = ["connection refused"]
    health.depend("nats", lambda: reasons[0] if reasons else None)
    health.depend("postgres", lambda: None)

    async with client(Starlette(routes=health.routes())) as http:
        away = await http.get("/readyz")
        alive = await http.get("/healthz")
        reasons.clear()
        back = await http.get("/readyz")

    assert away.status_code == 503
    assert away.json() == {
        "ready": False,
        "away": {"nats": "connection refused"},
        "degraded": {},
    }
    assert (alive.status_code, alive.json()) == (200, {"healthy": True})
    assert back.status_code == 200


async def test_metrics_are_served_as_text() -> None:
    async with client(Starlette(routes=Health().routes())) as http:
        answer = await http.get("/metrics")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "python_info" in answer.text


async def test_work_is_ready_once_it_is_open_and_closed_at_the_end() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        steps.append("open")
        yield
        steps.append("closed")

    async with running(application("test", work, Health())) as http:
        assert await wait_for_readiness(http) == {"ready": True, "away": {}, "degraded": {}}

    assert steps == ["open", "closed"]


async def test_work_that_cannot_start_is_tried_again_and_says_why() -> None:
    starts = 0
    up = asyncio.Event()

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        nonlocal starts
        starts += 1
        if not up.is_set():
            await fail_to_connect()
        yield

    async with running(application("test", work, Health())) as http:
        async with asyncio.timeout(WAIT_S):
            while starts == 0:
                await asyncio.sleep(0)
        away = await wait_for_readiness(http, status=503)
        up.set()
        await wait_for_readiness(http)

    assert away["away"] == {"work": "ConnectionError: no servers"}
    assert starts >= 2


async def test_a_process_stops_although_its_work_never_started() -> None:
    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        await fail_to_connect()
        yield

    async with asyncio.timeout(WAIT_S):
        async with running(application("test", work, Health())) as http:
            assert (await http.get("/healthz")).status_code == 200


def test_a_process_with_a_wrong_configuration_ends_with_the_reason() -> None:
    with pytest.raises(SystemExit) as ended:
        main("ingest", {"FAIRLEAD_HEALTH_PORT": "x"}, lambda _config: Starlette())

    assert str(ended.value).startswith("fairlead-ingest: ")
    assert "health.port" in str(ended.value)
