"""Request and reply over a real NATS server: every request is answered, described and counted."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import httpx
import nats
import pytest
from faststream import Context
from nats.aio.client import Client
from prometheus_client import REGISTRY, generate_latest
from starlette.applications import Starlette

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.jetstream.client import open_client
from fairlead_schema import subjects
from fairlead_schema.errors import Conflict, Refused, ServiceUnavailable
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.model import InputModel, Model
from fairlead_service.rpc import thin_path
from fairlead_service.rpc.caller import current_caller
from fairlead_service.rpc.server import ANY_TENANT, RpcServer, TenantParam
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

WAIT_S = 5.0


class Greeting(InputModel):
    name: str
    times: int = 1


class Greeted(Model):
    text: str
    tenant_id: str
    note: str | None = None


class Away(Exception):
    pass


class FarAway(Away):
    pass


async def greet(
    word: Annotated[str, Context("word")], tenant: TenantParam, command: Greeting
) -> Greeted:
    return await perform(word, tenant, command)


async def refuse(tenant: TenantParam, command: Greeting) -> Greeted:
    raise Conflict("Always", f"{tenant}/{command.name}")


async def perform(word: str, tenant: str, command: Greeting) -> Greeted:
    match command.name:
        case "defect":
            raise RuntimeError("secret detail")
        case "away":
            raise FarAway("no servers")
        case "wrong":
            return command  # type: ignore[return-value]
        case "slow":
            await asyncio.sleep(0.3)
        case _:
            pass
    text = f"{word} {command.name}" * command.times
    return Greeted(text=text, tenant_id=tenant, note=current_caller())


def away(error: Away) -> Refused:
    return ServiceUnavailable(str(error), service="elsewhere")


def server(url: str) -> RpcServer:
    rpc = RpcServer(partial(open_client, NatsAddress(url)), name="greeter", refusals={Away: away})
    rpc.provide("word", "hello")
    rpc.serve("greet.typed", subjects.api(ANY_TENANT, "greet.typed"), greet)
    rpc.serve("greet.refuse", subjects.api(ANY_TENANT, "greet.refuse"), refuse)
    rpc.serve_thin(
        "greet.thin",
        subjects.api(ANY_TENANT, "greet.thin"),
        greet,
        lambda tenant, command: perform("hello", tenant, command),
    )
    return rpc


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[RpcServer]:
    rpc = server(url)
    await rpc.start()
    try:
        yield rpc
    finally:
        await rpc.stop()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    running = Server(tmp_path_factory.mktemp("nats"), free_port())
    running.start()
    try:
        yield running.url
    finally:
        running.kill()


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    connection = await nats.connect(url)
    yield connection
    await connection.close()


async def request(client: Client, subject: str, body: object) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    message = await client.request(subject, raw, timeout=WAIT_S)
    answer: dict[str, Any] = json.loads(message.data)
    return answer


@pytest.fixture(params=["typed", "thin"])
async def greet_subject(request: pytest.FixtureRequest, url: str) -> AsyncIterator[str]:
    """The same verb on both paths: their answers do not differ."""
    async with serving(url):
        yield subjects.api("acme", f"greet.{request.param}")


async def test_an_answer_holds_data_without_absent_keys(client: Client, greet_subject: str) -> None:
    answer = await request(client, greet_subject, {"name": "Ada"})

    assert answer == {"data": {"text": "hello Ada", "tenantID": "acme"}}


async def test_a_handler_knows_the_caller_that_a_service_names(
    client: Client, greet_subject: str
) -> None:
    headers = {subjects.BY_HEADER: "key:ci"}
    message = await client.request(greet_subject, b'{"name":"Ada"}', WAIT_S, headers=headers)

    assert json.loads(message.data)["data"]["note"] == "key:ci"
    assert "note" not in (await request(client, greet_subject, {"name": "Ada"}))["data"]


async def test_a_caller_that_is_no_principal_is_refused(client: Client, greet_subject: str) -> None:
    headers = {subjects.BY_HEADER: "root"}
    message = await client.request(greet_subject, b'{"name":"Ada"}', WAIT_S, headers=headers)

    assert json.loads(message.data)["error"]["_tag"] == "InvalidRequestError"


async def test_json_is_read_whatever_the_headers_say(client: Client, greet_subject: str) -> None:
    headers = {"content-type": "text/plain"}
    message = await client.request(greet_subject, b'{"name":"Ada"}', WAIT_S, headers=headers)

    assert json.loads(message.data)["data"]["text"] == "hello Ada"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        (b"", "name"),
        ({"name": 7}, "name"),
        ({"name": "Ada", "times": "many"}, "times"),
        ({"name": None}, None),
        ([], None),
        (7, None),
        (b"not json", None),
        (b"\xff\xfe", None),
        (b"[" * 5000, None),
        (b'{"name":"\\ud800"}', None),
    ],
)
async def test_a_wrong_request_is_refused_with_its_field(
    client: Client, greet_subject: str, body: object, field: str | None
) -> None:
    """A-10: malformed JSON gets a typed answer too."""
    refused = (await request(client, greet_subject, body))["error"]

    assert (refused["_tag"], refused["kind"]) == ("InvalidRequestError", "Body")
    assert refused.get("field") == field
    assert "command" not in refused["message"]


async def test_a_tenant_that_is_no_name_is_refused(client: Client, greet_subject: str) -> None:
    """A-10: a tenant becomes a subject token."""
    subject = greet_subject.replace("acme", "a,b")

    refused = (await request(client, subject, {"name": "Ada"}))["error"]

    assert (refused["_tag"], refused["kind"]) == ("InvalidRequestError", "Params")
    assert "a,b" in refused["message"]


async def test_the_errors_of_a_service_become_its_refusals(
    client: Client, greet_subject: str
) -> None:
    """A-10: the nearest base class decides."""
    refused = (await request(client, greet_subject, {"name": "away"}))["error"]

    assert (refused["_tag"], refused["service"]) == ("ServiceUnavailableError", "elsewhere")


async def test_a_defect_is_answered_at_once_with_a_reference(
    client: Client, greet_subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A-06: the caller does not wait for a timeout, and the reference finds the log line."""
    refused = (await request(client, greet_subject, {"name": "defect"}))["error"]

    assert refused["_tag"] == "UnknownError"
    assert "secret" not in refused["message"]
    assert refused["ref"] in [getattr(record, "ref", None) for record in caplog.records]


async def test_an_answer_of_the_wrong_type_is_a_defect(url: str, client: Client) -> None:
    """The caller did nothing wrong: its request is not called invalid."""
    async with serving(url):
        answer = await request(client, subjects.api("acme", "greet.typed"), {"name": "wrong"})

    assert answer["error"]["_tag"] == "UnknownError"


async def test_an_answer_that_nats_cannot_carry_is_refused(
    client: Client, greet_subject: str
) -> None:
    """The caller is told the reason instead of waiting for an answer that is dropped."""
    refused = (await request(client, greet_subject, {"name": "Ada", "times": 3_000_000}))["error"]

    assert refused["_tag"] == "TooLargeError"
    assert "bytes exceeds" in refused["message"]


async def test_requests_are_answered_side_by_side(client: Client, greet_subject: str) -> None:
    began = asyncio.get_running_loop().time()

    await asyncio.gather(*(request(client, greet_subject, {"name": "slow"}) for _ in range(20)))

    assert asyncio.get_running_loop().time() - began < 20 * 0.3 / 2


async def test_a_request_that_was_taken_is_answered_before_the_server_stops(
    url: str, client: Client
) -> None:
    subject = subjects.api("acme", "greet.{}")
    async with serving(url):
        taken = [
            asyncio.create_task(request(client, subject.format(path), {"name": "slow"}))
            for path in ("typed", "thin")
        ]
        await asyncio.sleep(0.1)

    answers = await asyncio.gather(*taken)
    assert all(answer["data"]["text"] == "hello slow" for answer in answers)


async def test_a_server_starts_again_after_it_stopped(url: str, client: Client) -> None:
    rpc = server(url)
    for _ in range(2):
        await rpc.start()
        for path in ("typed", "thin"):
            answer = await request(client, subjects.api("acme", f"greet.{path}"), {"name": "Ada"})
            assert "data" in answer
        await rpc.stop()


async def test_a_server_stops_although_nats_is_gone(tmp_path: Path) -> None:
    nats_server = Server(tmp_path, free_port())
    nats_server.start()
    rpc = server(nats_server.url)
    await rpc.start()
    nats_server.kill()

    async with asyncio.timeout(WAIT_S):
        await rpc.stop()


async def test_metrics_have_no_label_per_tenant(client: Client, greet_subject: str) -> None:
    for tenant in ("acme", "other", "api"):
        await request(client, greet_subject.replace("acme", tenant), {"name": "Ada"})

    metrics = generate_latest().decode()
    path = greet_subject.rpartition(".")[2]
    assert f'handler="fairlead.api.*.greet.{path}"' in metrics
    assert "fairlead.api.other" not in metrics
    assert "fairlead.*.api" not in metrics


def counted(path: str, name: str, **labels: str) -> float:
    """A metric of a verb on one path."""
    fixed = {"app_name": "fairlead", "broker": "nats", "handler": f"fairlead.api.*.greet.{path}"}
    return REGISTRY.get_sample_value(f"fairlead_rpc_{name}", {**fixed, **labels}) or 0.0


async def test_both_paths_count_the_same(client: Client, greet_subject: str) -> None:
    """An operator sees every verb in one table, whatever serves it."""
    path = greet_subject.rpartition(".")[2]
    samples: list[tuple[str, dict[str, str]]] = [
        ("received_messages_total", {}),
        ("received_processed_messages_total", {"status": "acked"}),
        ("received_processed_messages_total", {"status": "error"}),
        ("received_processed_messages_duration_seconds_count", {}),
    ]
    before = [counted(path, name, **labels) for name, labels in samples]
    for body in (b'{"name":"Ada"}', b'{"name":"Ada"}', b'{"name":"away"}'):
        await request(client, greet_subject, body)
    after = [counted(path, name, **labels) for name, labels in samples]

    changes = [now - then for then, now in zip(before, after, strict=True)]
    assert changes == [3, 2, 1, 3]


async def test_more_requests_than_are_answered_at_once_wait_for_their_turn(
    client: Client, greet_subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thin_path, "REQUESTS_MAX", 3)
    slow = [request(client, greet_subject, {"name": "slow"}) for _ in range(10)]
    answers = await asyncio.gather(*slow)

    assert all(answer["data"]["text"] == "hello slow" for answer in answers)


async def describe(client: Client, request: str, *, answers: int) -> list[dict[str, Any]]:
    """What `nats micro` asks: one request, an answer of every instance."""
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    await client.publish(f"$SRV.{request}", reply=inbox)
    bodies = [json.loads((await subscription.next_msg(WAIT_S)).data) for _ in range(answers)]
    await asyncio.sleep(0.05)
    assert subscription.pending_msgs == 0, "nobody else answers"
    await subscription.unsubscribe()
    return bodies


async def test_every_instance_answers_a_ping(url: str, client: Client) -> None:
    async with serving(url) as first, serving(url) as second:
        pings = await describe(client, "PING", answers=2)
        of_kind = await describe(client, "PING.fairlead-greeter", answers=2)
        (alone,) = await describe(client, f"PING.fairlead-greeter.{first.api.id}", answers=1)

    assert {ping["id"] for ping in pings} == {first.api.id, second.api.id}
    assert {ping["id"] for ping in of_kind} == {first.api.id, second.api.id}
    assert {ping["type"] for ping in pings} == {"io.nats.micro.v1.ping_response"}
    assert (alone["name"], alone["id"]) == ("fairlead-greeter", first.api.id)


async def test_info_holds_the_schemas_of_every_verb(url: str, client: Client) -> None:
    async with serving(url):
        (info,) = await describe(client, "INFO.fairlead-greeter", answers=1)

    assert info["type"] == "io.nats.micro.v1.info_response"
    endpoints = {endpoint["name"]: endpoint for endpoint in info["endpoints"]}
    assert set(endpoints) == {"greet-typed", "greet-refuse", "greet-thin"}
    for path in ("typed", "thin"):
        endpoint = endpoints[f"greet-{path}"]
        assert endpoint["subject"] == f"fairlead.api.*.greet.{path}"
        assert endpoint["queue_group"] == "greeter"
        assert endpoint["metadata"]["verb"] == f"greet.{path}"
        schema = json.loads(endpoint["metadata"]["request_schema"])
        assert set(schema["properties"]) == {"name", "times"}
        schema = json.loads(endpoint["metadata"]["response_schema"])
        assert "tenantID" in schema["properties"]


async def test_stats_count_requests_errors_and_time(url: str, client: Client) -> None:
    async with serving(url):
        for path in ("typed", "thin"):
            subject = subjects.api("acme", f"greet.{path}")
            for name in ("Ada", "slow", "defect"):
                await request(client, subject, {"name": name})
            await request(client, subject, {})
        await request(client, subjects.api("acme", "greet.refuse"), {"name": "Ada"})
        (stats,) = await describe(client, "STATS.fairlead-greeter", answers=1)

    assert stats["type"] == "io.nats.micro.v1.stats_response"
    assert stats["started"].endswith("Z")
    counted = {endpoint["name"]: endpoint for endpoint in stats["endpoints"]}
    for path in ("typed", "thin"):
        endpoint = counted[f"greet-{path}"]
        assert (endpoint["num_requests"], endpoint["num_errors"]) == (4, 2)
        assert endpoint["last_error"].startswith("InvalidRequestError: name")
        assert endpoint["processing_time"] > 300_000_000
        assert endpoint["average_processing_time"] == endpoint["processing_time"] // 4
    refused = counted["greet-refuse"]
    assert (refused["num_requests"], refused["num_errors"]) == (1, 1)


async def test_stats_are_parsed_by_the_client_of_nats(url: str, client: Client) -> None:
    """The answers have every key that the official client reads."""
    from nats.micro.service import ServiceInfo, ServicePing  # noqa: PLC0415

    async with serving(url) as rpc:
        (ping,) = await describe(client, "PING.fairlead-greeter", answers=1)
        (info,) = await describe(client, "INFO.fairlead-greeter", answers=1)

    assert ServicePing.from_dict(ping).id == rpc.api.id
    assert len(ServiceInfo.from_dict(info).endpoints) == 3


async def test_the_document_holds_both_kinds_of_verb() -> None:
    rpc = server("nats://127.0.0.1:1")

    application = Starlette(routes=[rpc.asyncapi_route("Greeter")])
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://greeter") as http:
        answers = [await http.get("/asyncapi.json") for _ in range(2)]

    first, second = (answer.json() for answer in answers)
    assert first == second
    assert {channel.partition(":")[0] for channel in first["channels"]} == {
        *("greet.typed", "greet.refuse", "greet.thin")
    }
