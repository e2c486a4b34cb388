"""`fairlead nats-callout` and users of an identity provider: their tokens open NATS as they open HTTP."""

import asyncio
import base64
import json
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import jwt
import nats.errors
import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from fairlead_cli.commands.stack.nats_callout import build_callout
from fairlead_cli.embedded.ports import free_port
from fairlead_cli.nats_access.keys import KeyChanges, write_keys
from fairlead_eventlog.grants.key_directory import KeyDirectory
from fairlead_eventlog.grants.tenants import principal_inbox
from fairlead_eventlog.jetstream.auth_callout import serve_callout
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.ports import START
from fairlead_eventlog.provision import provision
from fairlead_schema import subjects
from fairlead_schema.identity.nats_address import NatsAddress
from fairlead_schema.identity.principal import Principal
from fairlead_schema.subjects import Address
from fairlead_service.config.configuration import Config, load
from fairlead_testing.nats import Server
from fairlead_testing.nats_probe import Probe, probe

pytestmark = pytest.mark.integration

TIMEOUT_S: Final = 20.0
ISSUER, AUDIENCE, KEY_ID = "https://id.example", "fairlead", "k1"
ADA: Final = Principal(f"user:{ISSUER}/ada", "acme", frozenset())
SECRET, FOREIGN = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


@dataclass
class Place:
    """A server with a callout in its configuration, and an issuer of tokens."""

    server: Server
    keys: KeyDirectory
    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        public = ECAlgorithm.to_jwk(SECRET.public_key(), as_dict=True)
        jwks = {"keys": [public | {"kid": KEY_ID, "use": "sig"}]}
        (self.root / "jwks.json").write_text(json.dumps(jwks))
        self.denied.write_text("stolen\n")
        self.env = {
            "FAIRLEAD_AUTH_ISSUER": ISSUER,
            "FAIRLEAD_AUTH_AUDIENCE": AUDIENCE,
            "FAIRLEAD_AUTH_JWKS_FILE": str(self.root / "jwks.json"),
            "FAIRLEAD_AUTH_DENY_FILE": str(self.denied),
        }

    @property
    def denied(self) -> Path:
        return self.root / "denied.txt"

    @property
    def config(self) -> Config:
        return load(None, self.env)

    @asynccontextmanager
    async def callout(self) -> AsyncIterator[None]:
        decide = build_callout(self.config, self.keys).decide
        address = NatsAddress(self.server.url, nkey_file=str(self.keys.seed_file("callout")))
        async with serve_callout(address, decide):
            yield

    @asynccontextmanager
    async def client(self, token: str, principal: Principal = ADA) -> AsyncIterator[Probe]:
        address = replace(self.server.address, inbox_prefix=principal_inbox(principal))
        async with probe(address, token=token) as connected:
            yield connected

    async def is_refused(self, token: str) -> bool:
        try:
            async with self.client(token):
                return False
        except nats.errors.Error as error:
            return "authorization violation" in str(error).lower()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setattr("fairlead_service.identity.watched_file.CHECK_INTERVAL_S", 0)
    keys = KeyDirectory(tmp_path / "keys")
    write_keys(keys.root, KeyChanges(callout=True, tenants=("acme", "rival")))
    server = Server(tmp_path, free_port(), more='include "keys/auth.conf"')
    server.start()
    try:
        yield Place(server, keys, tmp_path)
    finally:
        server.kill()


def sign(key: ec.EllipticCurvePrivateKey = SECRET, **changes: object) -> str:
    """A token of the issuer. A change to None leaves a claim out."""
    now = int(time.time())
    claims: dict[str, Any] = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "iat": now,
        "exp": now + 600,
        "jti": "t1",
        "tenant": "acme",
        "roles": ["user"],
    }
    kept = {name: value for name, value in (claims | changes).items() if value is not None}
    return jwt.encode(kept, key, algorithm="ES256", headers={"kid": KEY_ID})


def unsigned_token() -> str:
    """A token that says `alg: none`, which no library would write."""
    payload = sign().split(".")[1]
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"k1"}').rstrip(b"=").decode()
    return f"{head}.{payload}."


async def test_a_user_calls_its_own_verbs_alone(place: Place) -> None:
    """B8: the subject names the user as the token does, and no other principal or tenant."""
    own = subjects.as_principal("acme", ADA.name, "session.get")
    eve = subjects.as_principal("acme", f"user:{ISSUER}/eve", "session.get")
    foreign = {
        subjects.as_principal("acme", ADA.name, "session.delete"),
        subjects.as_principal("rival", ADA.name, "session.get"),
        eve,
        "fairlead.as.acme.key:1.session.get",
        f"fairlead.as.acme.{ADA.name}.session.get",
        "fairlead.api.acme.session.get",
        "fairlead.prompt.rival.ses_x",
        "fairlead.log.acme.1.ses_x",
    }

    async with place.callout(), place.client(sign()) as connected:
        assert await connected.publish({"own": own}) == {"own"}
        assert await connected.publish({name: name for name in foreign}) == set()
        heard = {"fairlead.event.rival.>", "_INBOX.>", f"{principal_inbox(ADA)[:-1]}.>", ">"}
        assert await connected.subscribe({name: name for name in heard}) == set()
        assert await connected.subscribe({"own": "fairlead.event.acme.>"}) == {"own"}


async def test_tokens_that_prove_nothing_are_refused_with_an_audit_line(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """B8: the same confusions as over HTTP, and a tenant that the servers do not know."""
    caplog.set_level(logging.INFO, "fairlead.audit")
    past = int(time.time()) - 3000
    tokens = {
        sign(iat=past, exp=past + 600): "expired",
        sign(iss="https://evil.example"): "issuer",
        sign(FOREIGN): "ignature",
        sign(aud="other"): "udience",
        unsigned_token(): "algorithm",
        sign(jti="stolen"): "deny list",
        sign(jti=None): "no jti",
        sign(exp=int(time.time()) + 7200): "lives longer",
        sign(tenant=None): "tenant",
        sign(tenant="stranger"): "--tenant stranger",
        "a.b.c": "neither a key nor a token",
        "flk_0123456789ab_secret": "neither a key nor a token",
    }

    async with place.callout():
        for token in tokens:
            assert await place.is_refused(token)
        assert not await place.is_refused(sign())

    lines = [vars(record) for record in caplog.records if record.name == "fairlead.audit"]
    reasons = [line["reason"] for line in lines if line["outcome"] == "refused"]
    for word, reason in zip(tokens.values(), reasons, strict=True):
        assert word in reason
    assert [line["principal"] for line in lines if line["outcome"] == "allowed"] == [ADA.name]
    assert not any(token in caplog.text for token in tokens)


async def test_a_token_of_another_tenant_reaches_that_tenant_alone(place: Place) -> None:
    """B9: the claim of the token chooses the account, and nothing that the client says."""
    token, rival = sign(tenant="rival"), replace(ADA, tenant="rival")

    async with place.callout(), place.client(token, rival) as connected:
        tried = {
            tenant: subjects.as_principal(tenant, ADA.name, "session.get")
            for tenant in ("acme", "rival")
        }
        assert await connected.publish(tried) == {"rival"}


HOSTILE_NAMES: Final = ("*", ">", "ada.*", "ada.>", "a/../ada", "ada.session.get", "a" * 230)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
async def test_no_name_of_a_user_opens_the_subjects_of_another(place: Place, name: str) -> None:
    """B8: wildcards, dots and long names stay inside one token, as a real server reads it."""
    hostile = replace(ADA, name=f"user:{ISSUER}/{name}")
    own = subjects.as_principal("acme", hostile.name, "session.get")
    foreign = {
        subjects.as_principal("acme", ADA.name, "session.get"),
        subjects.as_principal("rival", hostile.name, "session.get"),
        "fairlead.as.acme.key:1.session.get",
    }
    heard = {f"{principal_inbox(ADA)}.>", "*.>", "_INBOX.>"}

    async with place.callout(), place.client(sign(sub=name), hostile) as connected:
        assert await connected.publish({"own": own}) == {"own"}
        assert await connected.publish({name: name for name in foreign}) == set()
        assert await connected.subscribe({name: name for name in heard}) == set()


@pytest.mark.parametrize("name", ["", "a b", "J\u00fcrgen", "a\tb", "a\nb", "a" * 300])
async def test_a_name_that_nothing_can_carry_is_refused(place: Place, name: str) -> None:
    """B8: no name is cut or changed so that it becomes the name of somebody else."""
    async with place.callout():
        assert await place.is_refused(sign(sub=name))


async def test_a_tenant_that_the_server_does_not_know_yet_connects_nobody(place: Place) -> None:
    """B9: the callout allows the tenant, the server has no account for it: there is no other one."""
    write_keys(place.keys.root, KeyChanges(tenants=("late",)))

    async with place.callout():
        assert await place.is_refused(sign(tenant="late"))
        assert not await place.is_refused(sign())


async def test_a_token_that_is_revoked_meanwhile_opens_no_new_connection(place: Place) -> None:
    """B8: the deny list counts within a second, without a restart."""
    token = sign(jti="later")

    async with place.callout():
        assert not await place.is_refused(token)
        place.denied.write_text("stolen\nlater\n")
        async with asyncio.timeout(TIMEOUT_S):
            while not await place.is_refused(token):
                await asyncio.sleep(0.1)


async def test_a_connection_ends_when_its_token_expires(place: Place) -> None:
    """B8: the minted user lives no longer than the token. The server closes the connection."""
    token = sign(exp=int(time.time()) + 3)

    async with place.callout(), place.client(token) as connected:
        async with asyncio.timeout(TIMEOUT_S):
            while not connected.client.is_closed:
                await asyncio.sleep(0.02)


async def test_what_a_user_does_over_nats_names_the_user_in_the_log(place: Place) -> None:
    """B8: ingest, as a process, writes the name of the token's subject as `by`."""
    await provision(place.keys.service_address(place.server.url, "provision"))
    create = subjects.as_principal("acme", ADA.name, "session.create")
    async with place.callout(), ingest(place), place.client(sign()) as connected:
        session_id = orjson.loads(await ask_when_ready(connected, create))["data"]["id"]

    operator = place.keys.service_address(place.server.url, "operator")
    async with connect(operator, name="test") as eventlog:
        page = await eventlog.log.read(Address("acme", session_id), after=START)
    assert [stored.commit.by for stored in page.commits] == [ADA.name]


async def ask_when_ready(connected: Probe, subject: str) -> bytes:
    """The answer to a request, as soon as somebody answers."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with suppress(nats.errors.NoRespondersError):
                answer = await connected.client.request(subject, b"{}", timeout=TIMEOUT_S)
                return answer.data
            await asyncio.sleep(0.1)


@asynccontextmanager
async def ingest(place: Place) -> AsyncIterator[None]:
    """The process that writes what callers ask for."""
    env = {
        "FAIRLEAD_NATS_URL": place.server.url,
        "FAIRLEAD_NATS_NKEY_FILE": str(place.keys.seed_file("ingest")),
        "FAIRLEAD_HEALTH_PORT": "0",
        "FAIRLEAD_LOCATION_DEFAULT": str(place.root),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_ingest"), env={**os.environ, **env}, cwd=place.root
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()
