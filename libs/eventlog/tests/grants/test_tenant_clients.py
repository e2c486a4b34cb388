"""What a hostile client of a tenant tries on a real server, and where the server stops it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from nats.aio.msg import Msg

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.grants.tenants import (
    CLIENT_CONNECTIONS_MAX,
)
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.link import NatsLink
from fairlead_eventlog.jetstream.link_lifetime import open_link
from fairlead_eventlog.provision import provision
from fairlead_schema.identity.nats_address import CLIENT_PAYLOAD_BYTES_MAX, CLIENT_SUBSCRIPTIONS_MAX
from fairlead_schema.identity.principal import Principal
from fairlead_schema.identity.scopes import scopes_of
from fairlead_testing.nats import Server, run_guarded_server
from fairlead_testing.nats_probe import Probe, probe

pytestmark = pytest.mark.integration

ADMIN: Final = Principal("key:one", "acme", scopes_of(["admin"]))
VIEWER: Final = Principal("key:eyes", "acme", scopes_of(["viewer"]))
RIVAL: Final = Principal("key:one", "rival", scopes_of(["admin"]))
OWN_PULL: Final = "$JS.API.CONSUMER.MSG.NEXT.EVENTS.feed-acme-key:eyes"
OWN_LOOK: Final = "$JS.API.CONSUMER.INFO.EVENTS.feed-acme-key:eyes"
NO_RECEIPT: Final = "$JS.API.DIRECT.GET.RECEIPTS.fairlead.receipt.acme.ses_x.msg_x"
TIMEOUT_S: Final = 20.0


@pytest.fixture
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyDirectory:
    directory = KeyDirectory(tmp_path_factory.mktemp("nats") / "keys")
    directory.write((ADMIN, VIEWER, RIVAL))
    return directory


@pytest.fixture
def guarded_server(keys: KeyDirectory) -> Iterator[Server]:
    """A server under the generated configuration."""
    with run_guarded_server(keys, "max_payload: 8MB") as running:
        yield running


@dataclass
class Platform:
    """The services, as the attacker finds them: streams, and somebody who answers every verb."""

    link: NatsLink
    requests: list[str]

    async def settle(self) -> None:
        """Return when the server has delivered everything that was sent before."""
        for _ in range(3):
            await self.link.api("STREAM.NAMES")


@asynccontextmanager
async def platform(server: Server, keys: KeyDirectory) -> AsyncIterator[Platform]:
    operator = keys.service_address(server.url, "operator")
    await provision(keys.service_address(server.url, "provision"))
    requests: list[str] = []

    async def answer(msg: Msg) -> None:
        requests.append(msg.subject)
        if msg.reply:
            await msg.respond(b'{"data":{}}')

    async with open_link(operator, name="test") as link, connect(operator, name="test") as log:
        for principal in (ADMIN, VIEWER):
            await log.client_consumers.open_feed("acme", principal.name, after=None)
        await link.client.subscribe("fairlead.as.>", cb=answer)
        await link.client.flush()
        yield Platform(link, requests)


async def stored(link: NatsLink, stream: str) -> int:
    state: dict[str, Any] = (await link.api(f"STREAM.INFO.{stream}"))["state"]
    return int(state["messages"])


async def until_closed(attacker: Probe) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not attacker.client.is_closed:
            await asyncio.sleep(0.02)


async def test_a_tenant_cannot_take_all_connections_of_the_server(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: the account of a tenant has a limit, so that services and other tenants still connect."""
    async with AsyncExitStack() as open_connections:
        attacker = keys.principal_address(guarded_server.url, ADMIN)
        for _ in range(CLIENT_CONNECTIONS_MAX):
            client = await open_client(attacker, name="test")
            open_connections.push_async_callback(client.close)

        with pytest.raises(LogUnavailable):
            await open_client(attacker, name="test")
        for other in (
            keys.principal_address(guarded_server.url, RIVAL),
            keys.service_address(guarded_server.url, "ingest"),
        ):
            await (await open_client(other, name="test")).close()


async def test_a_client_with_too_many_subscriptions_is_disconnected(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: one connection cannot fill the server with subscriptions."""
    async with probe(keys.principal_address(guarded_server.url, ADMIN)) as attacker:
        for number in range(CLIENT_SUBSCRIPTIONS_MAX + 1):
            await attacker.client.subscribe(f"fairlead.app.acme.{number}")

        await until_closed(attacker)


async def test_a_client_with_a_message_of_the_size_of_a_commit_is_disconnected(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: services exchange larger messages than the clients of tenants."""
    async with probe(keys.principal_address(guarded_server.url, ADMIN)) as attacker:
        attacker.client._max_payload = 2 * CLIENT_PAYLOAD_BYTES_MAX  # noqa: SLF001 - a hostile one
        too_large = bytes(CLIENT_PAYLOAD_BYTES_MAX + 1)
        await attacker.client.publish("fairlead.prompt.acme.ses_x", too_large)

        await until_closed(attacker)


@pytest.mark.parametrize(
    "target",
    [
        "fairlead.as.acme.key:one.session.create",
        "fairlead.as.rival.key:one.session.create",
        "fairlead.prompt.acme.ses_x",
        "fairlead.log.rival.1.ses_x",
        "fairlead.api.rival.session.create",
    ],
)
async def test_an_answer_never_becomes_a_request_in_the_name_of_another(
    target: str, guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: a viewer names the subject of an admin as the reply of everything that it may ask.

    Some answers have no body, and a verb takes those for an empty command.
    """
    async with (
        platform(guarded_server, keys) as services,
        probe(keys.principal_address(guarded_server.url, VIEWER)) as attacker,
    ):
        before = [await stored(services.link, stream) for stream in ("PROMPTS", "LOG-1")]
        await services.link.store("fairlead.event.acme.ses_x.created", b'{"sessionID":"ses_x"}')
        for subject, body in (
            ("fairlead.as.acme.key:eyes.session.get", b"{}"),
            (NO_RECEIPT, b""),
            (OWN_LOOK, b""),
            (OWN_PULL, b'{"batch":1,"no_wait":true}'),
            (OWN_PULL, b'{"batch":1,"no_wait":true}'),
        ):
            await attacker.client.publish(subject, body, reply=target)
        await attacker.client.flush()
        await services.settle()

        assert services.requests == ["fairlead.as.acme.key:eyes.session.get"]
        after = [await stored(services.link, stream) for stream in ("PROMPTS", "LOG-1")]
        assert after == before
        assert not attacker.refused


async def test_a_viewer_cannot_acknowledge_the_events_of_another_principal(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: an empty answer is an acknowledgement if it reaches the subject of one."""
    async with (
        platform(guarded_server, keys) as services,
        probe(keys.principal_address(guarded_server.url, ADMIN)) as owner,
        probe(keys.principal_address(guarded_server.url, VIEWER)) as attacker,
    ):
        await services.link.store("fairlead.event.acme.ses_x.created", b"{}")
        feed = await owner.client.jetstream().pull_subscribe_bind(
            consumer="feed-acme-key:one", stream="EVENTS"
        )
        (event,) = await feed.fetch(1, timeout=TIMEOUT_S)

        for _ in range(2):
            for subject in (NO_RECEIPT, OWN_PULL):
                body = b"" if subject == NO_RECEIPT else b'{"batch":1,"no_wait":true}'
                await attacker.client.publish(subject, body, reply=event.reply)
        await attacker.client.publish(event.reply, b"")
        await attacker.client.flush()
        await services.settle()

        info = await services.link.api("CONSUMER.INFO.EVENTS.feed-acme-key:one")
        assert info["num_ack_pending"] == 1


async def test_a_client_looks_at_its_own_consumer_and_at_no_other(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: FastStream, the `nats` command line and others look at a consumer before they pull."""
    async with (
        platform(guarded_server, keys) as services,
        probe(keys.principal_address(guarded_server.url, VIEWER)) as viewer,
    ):
        await services.link.store("fairlead.event.acme.ses_x.created", b"{}")
        stream = viewer.client.jetstream()
        for _ in range(20):
            # The account of the tenant, which has no JetStream, never answers instead.
            info = await stream.consumer_info("EVENTS", "feed-acme-key:eyes", timeout=TIMEOUT_S)
            assert info.config.filter_subject == "fairlead.event.acme.>"
        feed = await stream.pull_subscribe(
            "fairlead.event.acme.>", durable="feed-acme-key:eyes", stream="EVENTS"
        )
        assert [event.data for event in await feed.fetch(1, timeout=TIMEOUT_S)] == [b"{}"]
        assert not viewer.refused

        # The account maps the looks of all its principals, and refuses the name that comes of it.
        renamed = OWN_LOOK.replace("$JS", "FAIRLEAD.JS").removesuffix("feed-acme-key:eyes")
        others = ("feed-acme-key:one", "jobs-acme-key:one", "feed-rival-key:one", "feed-acme-*")
        for subject in (
            OWN_LOOK.replace("key:eyes", "key:one"),
            *(renamed + one for one in others),
        ):
            await viewer.client.publish(subject, b"")
        unmapped = ("$JS.API.CONSUMER.INFO.LOG-0.feed", "FAIRLEAD.JS.API.STREAM.INFO.EVENTS")
        assert await viewer.publish({subject: subject for subject in unmapped}) == set()
        refused = {subject for _kind, subject in viewer.refused} - set(map(str.lower, unmapped))
        assert refused == {(renamed + one).lower() for one in others}


async def test_a_client_hears_no_answer_of_others_and_steals_no_request(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: inboxes, reply subjects of the server and the queues of services are closed to clients."""
    subjects = (
        *("_INBOX.>", "_INBOX.*", "_INBOX_ingest.>", "_INBOX_key-one.>", "*.>", "_R_.>", "_GR_.>"),
        *("$SRV.>", "$SRV.PING", "$SYS.>", "$SYS.REQ.USER.AUTH", "$JS.>", "$JS.ACK.>", "$KV.>"),
        *("fairlead.>", "fairlead.as.>", "fairlead.as.*.*.session.get", "fairlead.*.acme.>"),
        *("fairlead.event.>", "fairlead.event.*.>", "fairlead.receipt.rival.>", "fairlead.delta.>"),
        *("fairlead.app.>", "fairlead.app.acme.>", "fairlead.app.rival.>", "fairlead.prompt.>"),
        *("fairlead.api.acme.session.get", "fairlead.commit.acme.>", "$JS.EVENT.ADVISORY.>"),
    )
    async with probe(keys.principal_address(guarded_server.url, VIEWER)) as attacker:
        assert await attacker.subscribe({subject: subject for subject in subjects}) == set()
        attacker.refused.clear()
        for queue in ("ingest", "tools"):
            await attacker.client.subscribe("fairlead.as.*.*.session.get", queue)
        published = ("$SRV.PING", "_R_.x", "_INBOX_ingest.x", "fairlead.app.acme.tool", "$SRV.INFO")
        assert await attacker.publish({subject: subject for subject in published}) == set()
        assert ("subscription", "fairlead.as.*.*.session.get") in attacker.refused


async def test_the_reply_of_a_broadcast_leads_nowhere(
    guarded_server: Server, keys: KeyDirectory
) -> None:
    """B9: a client may answer what it receives, but its answer stays in the account of its tenant."""
    heard: list[bytes] = []

    async def note(msg: Msg) -> None:
        heard.append(msg.data)

    async with (
        platform(guarded_server, keys) as services,
        probe(keys.principal_address(guarded_server.url, VIEWER)) as attacker,
    ):
        events = await attacker.client.subscribe("fairlead.event.acme.>")
        await attacker.client.flush()
        client = services.link.client
        await client.subscribe("_INBOX_projector.x", cb=note)
        await client.publish("fairlead.event.acme.ses_x.y", b"{}", reply="_INBOX_projector.x")
        event = await events.next_msg(timeout=TIMEOUT_S)
        await attacker.client.publish(event.reply or "_INBOX_projector.x", b'{"stream":"FORGED"}')
        await attacker.client.flush()
        await services.settle()

        assert not any(b"FORGED" in data for data in heard)


def test_the_server_waits_as_long_for_the_answer_of_a_tool_as_its_client_may_take(
    keys: KeyDirectory,
) -> None:
    """Both times are settings of the server: the shorter of them would lose late answers."""
    config = keys.config.read_text()

    served = [line for line in config.splitlines() if 'service: "fairlead.app.acme.>"' in line]
    assert any('response_threshold: "61m"' in line for line in served)
    assert 'allow_responses: { max: 1, expires: "61m" }' in config
