"""A request within the process and one over NATS: the same answers, errors and caller, on both paths."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import nats
import orjson
import pytest

from fairlead_cli.embedded.ports import free_port
from fairlead_eventlog.errors import LogUnavailable, MessageTooLarge, NoResponders
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.jetstream.local_requests import LocalResponders
from fairlead_eventlog.jetstream.requests import NatsRequests
from fairlead_schema import subjects
from fairlead_schema.errors import Conflict, PayloadTooLarge
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.model import InputModel, Model
from fairlead_schema.subjects import RESTRICTIONS_HEADER
from fairlead_service.rpc.caller import current_caller, current_restrictions
from fairlead_service.rpc.server import RpcServer, TenantParam
from fairlead_testing.nats import Server

pytestmark = pytest.mark.integration

TYPED = subjects.api("acme", "session.get")
THIN = subjects.api("acme", "session.prompt")
SUBJECTS = pytest.mark.parametrize("subject", [TYPED, THIN], ids=["typed", "thin"])


class Question(InputModel):
    name: str = "Ada"
    times: int = 1


class Reply(Model):
    text: str
    caller: str | None = None
    restrictions: Any = None


async def perform(tenant: str, command: Question) -> Reply:
    match command.name:
        case "conflict":
            raise Conflict("Always", tenant)
        case "slow":
            await asyncio.sleep(0.5)
        case _:
            pass
    given = current_restrictions().wire() or None
    return Reply(
        text=f"{tenant} {command.name}" * command.times, caller=current_caller(), restrictions=given
    )


async def handle(tenant: TenantParam, command: Question) -> Reply:
    return await perform(tenant, command)


class Paths:
    """The same server, asked over NATS and within the process."""

    def __init__(self, server: RpcServer, over_nats: NatsRequests, local: NatsRequests) -> None:
        self.server = server
        self.over_nats = over_nats
        self.local = local

    async def ask_both(self, subject: str, body: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        """The answer, which does not depend on the path."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        answers = [
            await path.request(subject, raw, timeout_s=5.0, **more)
            for path in (self.over_nats, self.local)
        ]
        assert answers[0] == answers[1]
        answer: dict[str, Any] = orjson.loads(answers[0])
        return answer


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    running = Server(tmp_path_factory.mktemp("nats"), free_port())
    running.start()
    try:
        yield running.url
    finally:
        running.kill()


@asynccontextmanager
async def open_paths(url: str) -> AsyncIterator[Paths]:
    address, responders = NatsAddress(url), LocalResponders()
    local = responders.requests_of("ingest")
    server = RpcServer(partial(open_client, address), name="ingest", local=local)
    server.serve_verb("session.get", handle)
    server.serve_verb("session.prompt", handle, perform)
    async with open_link(address, name="caller") as link:
        await server.start()
        gateway = NatsRequests(link, responders.requests_of("gateway"))
        try:
            yield Paths(server, NatsRequests(link), gateway)
        finally:
            await server.stop()


@pytest.fixture
async def paths(url: str) -> AsyncIterator[Paths]:
    async with open_paths(url) as opened:
        yield opened


@SUBJECTS
async def test_answers_are_the_same_bytes_on_both_paths(paths: Paths, subject: str) -> None:
    assert (await paths.ask_both(subject, {"name": "Ada"}))["data"] == {"text": "acme Ada"}
    assert (await paths.ask_both(subject, b""))["data"] == {"text": "acme Ada"}
    refused = await paths.ask_both(subject, {"name": "conflict"})
    assert refused["error"]["_tag"] == Conflict.tag
    for wrong in (b"{", {"times": "many"}):
        assert (await paths.ask_both(subject, wrong))["error"]["kind"] == "Body"
    too_large = await paths.ask_both(subject, {"times": 1_100_000})
    assert too_large["error"]["_tag"] == PayloadTooLarge.tag


@SUBJECTS
async def test_the_caller_and_its_restrictions_travel_on_both_paths(
    paths: Paths, subject: str
) -> None:
    restrictions = Restrictions(roots=("/work",))
    headers = {RESTRICTIONS_HEADER: json.dumps(restrictions.wire())}

    answer = await paths.ask_both(subject, {}, by="key:ada", headers=headers)

    assert answer["data"]["caller"] == "key:ada"
    assert answer["data"]["restrictions"] == restrictions.wire()
    assert "caller" not in (await paths.ask_both(subject, {}))["data"]
    refused = await paths.ask_both(subject, {}, by="no principal")
    assert refused["error"]["kind"] == "Headers"


@SUBJECTS
async def test_a_request_in_the_process_sends_nothing_to_nats_and_is_counted(
    paths: Paths, subject: str, url: str
) -> None:
    client = await nats.connect(url)
    heard: list[str] = []

    async def hear(message: Any) -> None:  # noqa: ANN401
        heard.append(message.subject)

    await client.subscribe(subject, cb=hear)
    await client.flush()

    await paths.local.request(subject, b"{}", timeout_s=5.0)
    await client.flush()
    assert heard == []
    await paths.over_nats.request(subject, b"{}", timeout_s=5.0)
    await client.flush()
    await client.close()

    assert heard == [subject]
    verb = subject.partition("acme.")[2]
    (endpoint,) = (found for found in paths.server.api.endpoints if found.verb == verb)
    assert endpoint.requests == 2


@SUBJECTS
async def test_a_late_answer_is_the_same_error_on_both_paths(paths: Paths, subject: str) -> None:
    for path in (paths.over_nats, paths.local):
        with pytest.raises(LogUnavailable, match="did not answer in"):
            await path.request(subject, b'{"name": "slow"}', timeout_s=0.05)


async def test_a_stopped_server_is_the_same_error_on_both_paths(url: str) -> None:
    async with open_paths(url) as paths:
        await paths.server.stop()
        for path in (paths.over_nats, paths.local):
            with pytest.raises(NoResponders):
                await path.request(THIN, b"{}", timeout_s=5.0)


async def test_a_request_that_nats_would_refuse_is_refused(paths: Paths) -> None:
    for path in (paths.over_nats, paths.local):
        with pytest.raises(MessageTooLarge):
            await path.request(THIN, b" " * (9 << 20), timeout_s=5.0)


async def test_a_server_starts_again_after_a_stop(paths: Paths) -> None:
    """The work of a process starts again after a failure, with the same server."""
    await paths.server.stop()
    await paths.server.start()

    assert "data" in await paths.ask_both(THIN, {})
