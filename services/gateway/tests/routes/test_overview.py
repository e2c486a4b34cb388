"""Sessions with their states, what waits for people, and what was used: for pages that show many."""

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.memory.requests import MemoryRequests
from fairlead_gateway.http import dispatch
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.routes.sessions.overview import IDS_MAX
from fairlead_gateway.settings import GatewaySettings
from fairlead_schema.commands.operations import OperationsReport, ServiceInstance, StreamState
from fairlead_schema.session_info import SessionTime
from fairlead_testing.read_model import MemoryReadModel
from services.gateway.tests.conftest import Append, Project, open_runtime

PERMISSION = {"id": "per_1", "sessionID": "ses_1", "action": "bash", "resources": ["ls"]}
QUESTION = {"id": "que_1", "sessionID": "ses_2", "questions": []}
TOKENS = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 2, "write": 0}}
MODEL = {"id": "m", "providerID": "p"}


def _answer(text: str, *, created: int, cost: float = 0.5) -> dict[str, Any]:
    content = [{"type": "text", "id": "t", "text": text}]
    return {
        "id": f"msg_{created}",
        "type": "assistant",
        "agent": "build",
        "model": MODEL,
        "content": content,
        "cost": cost,
        "tokens": TOKENS,
        "time": {"created": created},
    }


async def test_every_session_says_what_it_does(client: httpx.AsyncClient, project: Project) -> None:
    project("ses_1", created=1).asks = {"permission": [PERMISSION]}
    project("ses_2", created=2).owner = "run_1"
    project("ses_3", created=3).rested = "failed"
    project("ses_4", created=4).rested = "retry-later"
    project("ses_5", created=5).broken = "a bad event"
    project("ses_6", created=6).asked_for = True
    project("ses_7", created=7).rested = "over-budget"
    project("ses_8", created=8).rested = "parked"
    project("ses_9", created=9)

    page = (await client.get("/api/session/overview?order=asc")).json()["data"]

    assert [(session["id"], session["status"]["state"]) for session in page] == [
        ("ses_1", "waiting"),
        ("ses_2", "running"),
        ("ses_3", "failed"),
        ("ses_4", "retrying"),
        ("ses_5", "broken"),
        ("ses_6", "queued"),
        ("ses_7", "over-budget"),
        ("ses_8", "waiting"),
        ("ses_9", "idle"),
    ]
    assert page[0]["status"]["asks"] == 1
    assert {session["seq"] for session in page} == {1}
    assert page[7]["status"]["code"] == "tool"
    assert page[4]["status"]["detail"] == "a bad event"


async def test_the_pages_are_those_of_the_plain_list(
    client: httpx.AsyncClient, project: Project
) -> None:
    for number in range(1, 6):
        project(f"ses_{number}", created=number)

    first = (await client.get("/api/session/overview?limit=2")).json()
    cursor = first["cursor"]["next"]
    second = (await client.get(f"/api/session/overview?limit=2&cursor={cursor}")).json()

    assert [session["id"] for session in first["data"]] == ["ses_5", "ses_4"]
    assert [session["id"] for session in second["data"]] == ["ses_3", "ses_2"]


async def test_named_sessions_are_found_archived_ones_too_and_unknown_ones_are_left_out(
    client: httpx.AsyncClient, project: Project
) -> None:
    project("ses_1", created=1)
    project("ses_2", time=SessionTime(created=2, updated=2, archived=3))

    found = (await client.get("/api/session/overview?ids=ses_2,ses_1,ses_none")).json()["data"]

    assert [session["id"] for session in found] == ["ses_2", "ses_1"]
    assert found[0]["status"]["state"] == "archived"


@pytest.mark.parametrize("ids", ["nonsense", "ses_1,", ",".join(["ses_1"] * (IDS_MAX + 1))])
async def test_ids_that_are_none_and_too_many_ids_are_refused(
    client: httpx.AsyncClient, ids: str
) -> None:
    answer = await client.get(f"/api/session/overview?ids={ids}")

    assert (answer.status_code, answer.json()["field"]) == (400, "ids")


async def test_the_counts_leave_archived_sessions_out(
    client: httpx.AsyncClient, project: Project
) -> None:
    project("ses_1").owner = "run_1"
    project("ses_2").asks = {"permission": [PERMISSION], "question": [QUESTION]}
    project("ses_3").broken = "why"
    project("ses_4", time=SessionTime(created=1, updated=1, archived=1)).owner = "run_2"

    counts = (await client.get("/api/session/count")).json()["data"]

    assert counts == {"running": 1, "waiting": 1, "asks": 2, "broken": 1}


async def test_asks_come_with_what_a_person_wants_to_know(
    client: httpx.AsyncClient, project: Project
) -> None:
    old = project("ses_1", time=SessionTime(created=1, updated=5), title="Older")
    old.asks = {"permission": [PERMISSION]}
    old.messages = {3: _answer("I would like to look. " * 40, created=3)}
    new = project("ses_2", time=SessionTime(created=2, updated=9), title="Newer", agent="build")
    new.asks = {"question": [QUESTION]}

    asks = (await client.get("/api/ask")).json()["data"]

    assert [(ask["kind"], ask["title"]) for ask in asks] == [
        ("question", "Newer"),
        ("permission", "Older"),
    ]
    assert [ask["agent"] for ask in asks] == ["build", "build"], (
        "chosen, and the one that spoke last"
    )
    assert asks[1]["request"]["resources"] == ["ls"]
    assert asks[1]["lastWords"].endswith("I would like to look. ")
    assert len(asks[1]["lastWords"]) < 500


async def test_activity_counts_the_turns_since_a_time(
    client: httpx.AsyncClient, project: Project
) -> None:
    project("ses_1").messages = {
        1: _answer("before", created=99),
        2: _answer("after", created=100),
        3: _answer("later", created=200, cost=1.0),
    }

    activity = (await client.get("/api/tenant/activity?since=100")).json()["data"]

    assert activity == {"since": 100, "turns": 2, "cost": 1.5, "tokens": 34}


async def test_a_page_of_messages_says_from_where_a_stream_goes_on(
    client: httpx.AsyncClient,
    append: Append,
    project: Project,
) -> None:
    await append("ses_1")
    project("ses_1", seq=1).messages = {1: _answer("one", created=1)}

    page = (await client.get("/api/session/ses_1/message")).json()

    assert page["seq"] == 1


async def test_operations_join_what_the_servers_and_the_read_models_know(
    client: httpx.AsyncClient, eventlog: EventLog, project: Project
) -> None:
    project("ses_1").broken = "event 3 cannot be read"
    report = OperationsReport(
        services=(ServiceInstance(name="fairlead-ingest", id="i", version="1"),),
        streams=(
            StreamState(
                name="LOG-0",
                description="",
                messages=4,
                bytes=9,
                last_position=7,
                consumers=0,
            ),
        ),
    )

    async def answer(_body: bytes) -> bytes:
        return b'{"data":%s}' % report.model_dump_json(by_alias=True).encode()

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers["fairlead.operations.default"] = answer

    data = (await client.get("/api/operations")).json()["data"]

    assert [one["name"] for one in data["services"]] == ["fairlead-ingest"]
    assert data["shards"] == [{"shard": 0, "head": 7, "projected": 0, "messages": 4, "bytes": 9}]
    assert data["streams"] == []
    assert data["broken"][0]["sessionID"] == "ses_1"
    assert "metricsUrl" not in data


async def test_operations_name_the_page_of_metrics(
    settings: GatewaySettings, eventlog: EventLog, read: MemoryReadModel
) -> None:
    with_metrics = settings.model_copy(update={"metrics_url": "https://metrics.example/f"})
    runtime = open_runtime(with_metrics, lambda: eventlog, read)

    async def answer(_body: bytes) -> bytes:
        return b'{"data":{}}'

    assert isinstance(eventlog.requests, MemoryRequests)
    eventlog.requests.answerers["fairlead.operations.default"] = answer
    transport = httpx.ASGITransport(Starlette(routes=dispatch.build_routes(runtime, OPERATIONS)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        data = (await client.get("/api/operations")).json()["data"]

    assert data["metricsUrl"] == "https://metrics.example/f"


async def test_operations_say_that_the_projector_is_away(
    client: httpx.AsyncClient, read: MemoryReadModel
) -> None:
    assert read.unavailable is None

    answer = await client.get("/api/operations")

    assert (answer.status_code, answer.json()["service"]) == (503, "projector")
