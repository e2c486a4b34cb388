"""The client over a real nats-server, with services that a test scripts: credentials, losses, old servers."""

import asyncio
import json
import secrets
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import nkeys
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from fairlead_cli.embedded.ports import free_port
from fairlead_client import (
    AsyncFairlead,
    Fairlead,
    MalformedAnswer,
    NatsLogin,
    NotOverNats,
    ReceivedEvent,
    ServerAway,
    TokenUnavailable,
    UnknownRefusal,
)
from fairlead_client.async_client import nats_transport
from fairlead_client.nats_login import find_login
from fairlead_schema.errors import Forbidden, SessionUnreadable, Unauthorized
from fairlead_testing.nats import Server

pytestmark = [pytest.mark.integration, pytest.mark.timeout(60)]

SERVICE = 'user: "service", password: "s"'
GRANTS = (
    'permissions: { publish: ["fairlead.as.default.local.session.>"],'
    ' subscribe: ["_INBOX_local.>", "fairlead.event.default.>", "fairlead.delta.default.*"] }'
)


def users(*client: str) -> str:
    """A configuration with the scripted service and some keys of the client."""
    keys = "".join(f", {{ nkey: {key}, {GRANTS} }}" for key in client)
    return f"authorization {{ users = [ {{ {SERVICE} }}{keys} ] }}"


def make_seed(path: Path) -> str:
    """A new seed in a file, and its public key."""
    seed = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)
    path.write_bytes(seed)
    return str(nkeys.from_seed(bytearray(seed)).public_key.decode())


@pytest.fixture
def seed(tmp_path: Path) -> Path:
    return tmp_path / "client.nk"


@pytest.fixture
def server(tmp_path: Path, seed: Path) -> Iterator[Server]:
    """A server that knows the key of the client."""
    running = Server(tmp_path, free_port(), more=users(make_seed(seed)), jetstream=False)
    running.start()
    try:
        yield running
    finally:
        running.kill()


def durable(seq: int) -> dict[str, Any]:
    return {
        "id": f"evt_{seq}",
        "type": "session.next.synthetic",
        "data": {"sessionID": "ses_a"},
        "durable": {"aggregateID": "ses_a", "seq": seq, "version": 1},
    }


class ScriptedIngest:
    """Serves the log of one session, and whatever answers a test names."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.log: list[int] = []
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.pause_s = 0.0
        """It takes so long for each answer."""

    async def serve(self, message: Msg) -> None:
        verb = message.subject.split(".", 4)[4]
        self.asked.append(verb)
        await asyncio.sleep(self.pause_s)
        body = json.loads(message.data)
        answer = self.answers.get(verb)
        if answer is None and verb == "session.history":
            events = [durable(seq) for seq in self.log if seq > body["after"]]
            last = self.log[-1] if self.log else 0
            answer = {"data": {"events": events, "seq": last, "hasMore": False, "log": "log_1"}}
        if answer is not None:
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            await message.respond(raw)

    async def write(self, *seqs: int) -> None:
        """Write events, and publish them."""
        self.log += seqs
        for seq in seqs:
            body = json.dumps(durable(seq)).encode()
            await self._client.publish("fairlead.event.default.ses_a.synthetic", body)

    async def say(self, text: str, index: int) -> None:
        """Broadcast a fragment."""
        named = {"assistantMessageID": "msg_x", "textID": "t", "index": index}
        body = json.dumps({"type": "text.delta", "delta": text, **named}).encode()
        await self._client.publish("fairlead.delta.default.ses_a", body)


@asynccontextmanager
async def scripted_ingest(server: Server) -> AsyncIterator[ScriptedIngest]:
    client = await nats.connect(server.url, user="service", password="s", reconnect_time_wait=0.1)  # noqa: S106
    ingest = ScriptedIngest(client)
    await client.subscribe("fairlead.as.default.local.>", cb=ingest.serve)
    await client.flush()
    try:
        yield ingest
    finally:
        await client.close()


@pytest.fixture
async def ingest(server: Server) -> AsyncIterator[ScriptedIngest]:
    async with scripted_ingest(server) as running:
        yield running


def connect(server: Server, seed: Path, *, patience_s: float = 20.0) -> AsyncFairlead:
    return AsyncFairlead.over_nats(NatsLogin(server.url, nkey_file=seed), patience_s=patience_s)


async def until(taken: list[ReceivedEvent], count: int) -> None:
    async with asyncio.timeout(20):
        while len(taken) < count:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def following(fairlead: AsyncFairlead) -> AsyncIterator[list[ReceivedEvent]]:
    """What a follower takes meanwhile."""
    taken: list[ReceivedEvent] = []

    async def follow() -> None:
        async for event in fairlead.follow("ses_a"):
            taken.append(event)  # noqa: PERF401 - the test looks at it meanwhile

    task = asyncio.create_task(follow())
    try:
        yield taken
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_stream_goes_on_with_a_new_key_after_the_old_one_was_revoked(
    server: Server, seed: Path, ingest: ScriptedIngest, tmp_path: Path
) -> None:
    """H-30: no gap and no double. The seed is read again for each connection."""
    await ingest.write(1, 2)
    async with connect(server, seed) as fairlead, following(fairlead) as taken:
        await until(taken, 2)
        public = make_seed(seed)
        config = tmp_path / "nats.conf"
        config.write_text(config.read_text().split("authorization")[0] + users(public))
        server.reload()
        await ingest.write(3)
        await until(taken, 3)
        await ingest.write(4)
        await until(taken, 4)

    assert [event.seq for event in taken] == [1, 2, 3, 4]


async def test_a_token_is_fetched_for_each_connection(tmp_path: Path) -> None:
    """The server ends the connection of an expired token, and the source has a newer one."""
    server = Server(tmp_path, free_port(), jetstream=False, more="authorization { token: first }")
    server.start()
    tokens: list[str] = []

    async def fetch() -> str:
        tokens.append("second" if tokens else "first")
        return tokens[-1]

    login = NatsLogin(server.url, token=fetch)
    try:
        async with AsyncFairlead.over_nats(login, patience_s=0.5) as fairlead:
            with pytest.raises(ServerAway, match=r"nobody serves session\.get"):
                await fairlead.get("ses_a")
            config = tmp_path / "nats.conf"
            config.write_text(config.read_text().replace("first", "second"))
            server.reload()
            with pytest.raises(ServerAway, match=r"nobody serves session\.get"):
                await fairlead.get("ses_a")
    finally:
        server.kill()
    assert tokens[-1] == "second"


async def test_a_lost_hint_is_made_up_for_by_a_look_at_the_log(
    server: Server, seed: Path, ingest: ScriptedIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_transport, "LOOK_S", 0.1)
    async with connect(server, seed) as fairlead, following(fairlead) as taken:
        await ingest.write(1)
        await until(taken, 1)
        ingest.log.append(2)
        await until(taken, 2)


async def test_fragments_behind_a_lost_one_are_left_out(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    """The event that ends the text holds all of it. Nobody reads a text with a hole."""
    async with connect(server, seed) as fairlead, following(fairlead) as taken:
        await ingest.write(1)
        await until(taken, 1)
        for text, index in [("He", 0), ("l", 1), ("wor", 3), ("ld", 4)]:
            await ingest.say(text, index)
        await ingest.write(2)
        await until(taken, 4)

    assert [event.data.get("delta") or event.seq for event in taken] == [1, "He", "l", 2]


async def test_an_end_of_the_log_that_cannot_be_read_is_raised_behind_its_events(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    place = {"seq": 2, "reason": "no JSON"}
    page = {"events": [durable(1)], "seq": 1, "hasMore": False, "unreadable": place}
    ingest.answers["session.history"] = {"data": page}
    async with connect(server, seed) as fairlead:
        events = fairlead.events("ses_a")
        assert (await anext(events)).seq == 1
        with pytest.raises(SessionUnreadable, match="no JSON"):
            await anext(events)


async def test_a_command_is_repeated_until_it_is_answered(
    server: Server, seed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-14: nobody serves at first, then somebody does who answers late."""
    monkeypatch.setattr(nats_transport, "ANSWER_S", 0.2)
    async with connect(server, seed) as fairlead:
        asking = asyncio.create_task(fairlead.pending("ses_a"))
        await asyncio.sleep(0.3)
        async with scripted_ingest(server) as ingest:
            await asyncio.sleep(0.5)
            ingest.answers["session.pending"] = {"data": {"inputs": [], "shells": []}}
            assert await asking == []
    assert ingest.asked.count("session.pending") > 1


async def test_what_has_no_place_on_nats_says_so(server: Server, seed: Path) -> None:
    async with connect(server, seed) as fairlead:
        with pytest.raises(NotOverNats, match="HTTP API"):
            await fairlead.sessions()


async def test_a_refused_key_is_named_with_its_principal(server: Server, tmp_path: Path) -> None:
    other = tmp_path / "other.nk"
    make_seed(other)
    async with connect(server, other) as fairlead:
        with pytest.raises(Unauthorized, match=r"local of the tenant default: the key is not"):
            await fairlead.get("ses_a")


@pytest.mark.parametrize("text", [None, "no seed"])
async def test_a_key_file_that_is_missing_or_no_seed_is_named(
    server: Server, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "missing.nk"
    if text is not None:
        file.write_text(text)
    async with connect(server, file) as fairlead:
        with pytest.raises(TokenUnavailable, match=r"missing\.nk"):
            await fairlead.get("ses_a")


async def test_a_verb_without_a_grant_says_what_to_do(server: Server, seed: Path) -> None:
    """The grants are older than the client, or the principal lacks a role."""
    async with connect(server, seed) as fairlead:
        with pytest.raises(Forbidden, match="fairlead provision --nats-auth"):
            _ = [piece async for piece in fairlead.export("ses_a")]


async def test_a_server_that_is_away_is_named_without_its_password() -> None:
    login = NatsLogin("nats://me:secret@127.0.0.1:9")
    async with AsyncFairlead.over_nats(login, patience_s=0.1) as fairlead:
        with pytest.raises(ServerAway, match="FAIRLEAD_NATS_URL") as raised:
            await fairlead.create()
    assert "secret" not in str(raised.value)


async def test_an_ingest_that_does_not_know_the_verb_is_named(server: Server, seed: Path) -> None:
    async with connect(server, seed, patience_s=0.1) as fairlead:
        with pytest.raises(ServerAway, match="ingest is away, or older than this client"):
            await fairlead.explain("ses_a")


async def test_an_answer_that_is_no_json_is_told(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    ingest.answers["session.get"] = b"<html>"
    async with connect(server, seed) as fairlead:
        with pytest.raises(MalformedAnswer, match=r"the answer to session\.get"):
            await fairlead.get("ses_a")


async def test_the_synchronous_client_leaves_no_thread_behind(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    await ingest.write(1, 2)

    def read() -> list[int | None]:
        with Fairlead.over_nats(NatsLogin(server.url, nkey_file=seed)) as fairlead:
            taken = [event.seq for event in fairlead.events("ses_a")]
            for event in fairlead.follow("ses_a", after=1):
                taken.append(event.seq)
                break
        fairlead.close()
        return taken

    assert await asyncio.to_thread(read) == [1, 2, 2]
    assert not [thread for thread in threading.enumerate() if thread.name == "fairlead-nats"]


def test_a_login_comes_from_the_environment(tmp_path: Path) -> None:
    environment = {
        "FAIRLEAD_NATS_URL": "nats://a:1,nats://b:2",
        "FAIRLEAD_NATS_NKEY_FILE": "/keys/acme.nk",
        "FAIRLEAD_NATS_PRINCIPAL": "service:billing",
        "FAIRLEAD_TENANT": "acme",
    }
    login = find_login(state=tmp_path, environment=environment)

    assert (login.servers, login.tenant) == (("nats://a:1", "nats://b:2"), "acme")
    assert (login.inbox_prefix, login.nkey_file) == (
        "_INBOX_service-billing",
        Path("/keys/acme.nk"),
    )


async def test_a_refusal_of_a_newer_server_is_told_and_not_repeated(
    server: Server, seed: Path, ingest: ScriptedIngest
) -> None:
    ingest.answers["session.get"] = {"error": {"_tag": "MoonError", "message": "The moon is full"}}
    async with connect(server, seed) as fairlead:
        with pytest.raises(UnknownRefusal, match="MoonError"):
            await fairlead.get("ses_a")
    assert ingest.asked.count("session.get") == 1
