"""Tokens: what is refused, and that a repeated token costs little.

Each refusal is a known confusion of tokens: another issuer, another audience, no signature, a public
key used as a shared secret, keys that the token itself names.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import RSAAlgorithm

from fairlead_schema.errors import Unauthorized
from fairlead_service.config.auth import AuthConfig
from fairlead_service.config.configuration import Config
from fairlead_service.identity.authenticator import Authenticator, build_authenticator
from fairlead_service.identity.jwks import JwksUrl, parse_key_set
from fairlead_service.identity.keys import mint_key
from fairlead_testing.web_server import reply, site

ISSUER, AUDIENCE, KEY_ID = "https://id.example", "fairlead", "k1"
SECRET = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = SECRET.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def public_jwk(key: rsa.RSAPrivateKey, **fields: str) -> dict[str, Any]:
    jwk: dict[str, Any] = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return jwk | {"use": "sig", "alg": "RS256"} | fields


def claims(**changes: object) -> dict[str, Any]:
    now = int(time.time())
    fields = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "iat": now,
        "exp": now + 600,
        "jti": "t1",
        "tenant": "acme",
        "roles": ["user", "offline_access"],
    }
    return {key: value for key, value in (fields | changes).items() if value is not None}


def token(
    key: Any = SECRET,  # noqa: ANN401 - a key of any kind
    *,
    algorithm: str = "RS256",
    header: dict[str, Any] | None = None,
    **changes: object,
) -> str:
    headers = {"kid": KEY_ID} | (header or {})
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers=headers)


def raw_token(header: dict[str, Any], key: bytes | None = None) -> str:
    """A token that no library would write."""
    parts = [header, claims()]
    text = ".".join(_base64(json.dumps(part).encode()) for part in parts)
    signature = b"" if key is None else hmac.digest(key, text.encode(), hashlib.sha256)
    return f"{text}.{_base64(signature)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


@pytest.fixture
def config(tmp_path: Path) -> AuthConfig:
    jwks, denied = tmp_path / "jwks.json", tmp_path / "denied.txt"
    jwks.write_text(json.dumps({"keys": [public_jwk(SECRET, kid=KEY_ID)]}))
    denied.write_text("# token ids\nstolen\n")
    return AuthConfig(issuer=ISSUER, audience=AUDIENCE, jwks_file=str(jwks), deny_file=str(denied))


@pytest.fixture
def authenticator(config: AuthConfig, monkeypatch: pytest.MonkeyPatch) -> Authenticator:
    monkeypatch.setattr("fairlead_service.identity.watched_file.CHECK_INTERVAL_S", 0)
    return build_authenticator(config)


async def test_a_token_names_its_principal(authenticator: Authenticator) -> None:
    principal = await authenticator.authenticate(token)

    assert (principal.name, principal.tenant) == ("user:https://id.example/ada", "acme")
    assert principal.scopes == {"session:read", "session:write", "ask:reply"}
    assert principal.expires_at is not None


async def test_roles_may_be_words_and_unknown_roles_grant_nothing(
    authenticator: Authenticator,
) -> None:
    words = await authenticator.authenticate(lambda: token(roles="viewer approver", jti="a"))
    none = await authenticator.authenticate(lambda: token(roles=["emperor"], jti="b"))
    odd = await authenticator.authenticate(lambda: token(roles={"a": 1}, jti="c"))

    assert "approval:save" in words.scopes
    assert (none.scopes, odd.scopes) == (frozenset(), frozenset())


NOW = int(time.time())
CONFUSED: dict[str, Callable[[], str]] = {
    "empty": lambda: "",
    "garbage": lambda: "a.b.c",
    "a key of this project": lambda: mint_key(["admin"])[0],
    "expired": lambda: token(iat=NOW - 1200, exp=NOW - 600),
    "not valid yet": lambda: token(nbf=NOW + 600),
    "issued in the future": lambda: token(iat=NOW + 600, exp=NOW + 700),
    "without expiry": lambda: token(exp=None),
    "without issue time": lambda: token(iat=None),
    "without subject": lambda: token(sub=None),
    "subject is empty": lambda: token(sub=""),
    "without id": lambda: token(jti=None),
    "other issuer": lambda: token(iss="https://evil.example"),
    "other audience": lambda: token(aud="billing"),
    "without tenant": lambda: token(tenant=None),
    "tenant is a list": lambda: token(tenant=["acme"]),
    "tenant is a wildcard": lambda: token(tenant="*"),
    "tenant has a dot": lambda: token(tenant="acme.other"),
    "subject has a space": lambda: token(sub="a b"),
    "subject is not ASCII": lambda: token(sub="J\u00fcrgen"),
    "subject is too long": lambda: token(sub="a" * 300),
    "too long a life": lambda: token(exp=NOW + 7200),
    "on the deny list": lambda: token(jti="stolen"),
    "other key with our id": lambda: token(OTHER),
    "unknown key id": lambda: token(OTHER, header={"kid": "k2"}),
    "key id is a path": lambda: token(header={"kid": "../../etc/passwd"}),
    "key id is a query": lambda: token(header={"kid": "' OR 1=1 --"}),
    "key id is a number": lambda: raw_token({"alg": "RS256", "kid": 1}),
    "key from the token: jwk": lambda: token(OTHER, header={"jwk": public_jwk(OTHER)}),
    "key from the token: jku": lambda: token(OTHER, header={"jku": "http://127.0.0.1:1/jwks"}),
    "key from the token: x5u": lambda: token(OTHER, header={"x5u": "http://127.0.0.1:1/x"}),
    "critical header": lambda: token(header={"crit": ["exp"]}),
    "alg none": lambda: raw_token({"alg": "none", "kid": KEY_ID}),
    "alg None": lambda: raw_token({"alg": "None", "kid": KEY_ID}),
    "no alg": lambda: raw_token({"kid": KEY_ID}),
    "HS256 with the public key": lambda: raw_token({"alg": "HS256", "kid": KEY_ID}, PEM),
    "HS256 with an empty key": lambda: raw_token({"alg": "HS256", "kid": KEY_ID}, b""),
    "other algorithm of the same key": lambda: token(algorithm="PS256"),
    "cut signature": lambda: token().rpartition(".")[0] + ".",
    "other claims under our signature": lambda: ".".join(
        (token().split(".")[0], raw_token({}).split(".")[1], token().split(".")[2])
    ),
}


@pytest.mark.parametrize("make", CONFUSED.values(), ids=CONFUSED)
async def test_confused_tokens_are_refused(
    authenticator: Authenticator, make: Callable[[], str]
) -> None:
    for _ in range(2):
        with pytest.raises(Unauthorized):
            await authenticator.authenticate(make)


async def test_a_token_may_be_denied_after_it_was_used(
    authenticator: Authenticator, config: AuthConfig
) -> None:
    credential = token()
    await authenticator.authenticate(lambda: credential)
    assert config.deny_file is not None
    write(config.deny_file, "stolen\nt1\n")

    with pytest.raises(Unauthorized, match="deny list"):
        await authenticator.authenticate(lambda: credential)


async def test_a_remembered_token_ends_when_it_expires(
    authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    credential = token()
    await authenticator.authenticate(lambda: credential)
    later = (int(time.time()) + 3600) * 1000
    monkeypatch.setattr("fairlead_service.identity.authenticator.now_ms", lambda: later)

    with pytest.raises(Unauthorized, match="expired"):
        await authenticator.authenticate(lambda: credential)


async def test_a_key_that_leaves_the_set_takes_its_tokens_along(
    authenticator: Authenticator, config: AuthConfig
) -> None:
    credential = token()
    await authenticator.authenticate(lambda: credential)
    assert config.jwks_file is not None
    write(config.jwks_file, json.dumps({"keys": [public_jwk(OTHER, kid="k2")]}))

    with pytest.raises(Unauthorized, match="does not publish"):
        await authenticator.authenticate(lambda: credential)
    await authenticator.authenticate(lambda: token(OTHER, header={"kid": "k2"}))


def test_symmetric_and_encryption_keys_are_left_out() -> None:
    keys = parse_key_set(
        json.dumps(
            {
                "keys": [
                    {"kty": "oct", "k": _base64(b"secret"), "kid": "shared"},
                    public_jwk(OTHER, kid="enc", use="enc"),
                    public_jwk(SECRET, kid=KEY_ID),
                    "odd",
                ]
            }
        )
    )

    assert keys.find("shared") is None
    assert keys.find("enc") is None
    assert keys.find(KEY_ID) is not None
    assert keys.find(None) is not None


@pytest.mark.parametrize("text", ["[]", "{}", '{"keys": {}}', '{"keys": [{"kty": "RSA"}]}'])
def test_a_broken_key_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="key"):
        parse_key_set(text)
    with pytest.raises(ValueError, match="more than"):
        parse_key_set(json.dumps({"keys": [public_jwk(SECRET)] * 65}))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"issuer": ISSUER}, "audience"),
        ({"issuer": ISSUER, "audience": "a"}, "jwks_file or jwks_url"),
        ({"algorithms": ["HS256"]}, "asymmetric"),
        ({"algorithms": ["none"]}, "asymmetric"),
        ({"issuer": ISSUER, "audience": "a", "jwks_url": "http://id.example/k"}, "https"),
        ({"issuer": ISSUER, "audience": "a", "jwks_url": "file:///etc/passwd"}, "https"),
    ],
)
def test_a_weak_configuration_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Config.model_validate({"auth": settings})


@pytest.mark.parametrize(
    "odd",
    [
        {"alg": "RSA-OAEP"},
        {"kty": "OKP", "crv": "X25519", "x": "AAAA"},
        {"kty": ["RSA"]},
        {"kid": ["k9"]},
        {"kid": 9},
        {"n": 5},
    ],
    ids=str,
)
def test_a_key_that_cannot_be_read_does_not_take_the_others_along(odd: dict[str, Any]) -> None:
    """An issuer that publishes a new kind of key must not lock everybody out."""
    keys = [public_jwk(OTHER, kid="k9") | odd, public_jwk(SECRET, kid=KEY_ID)]

    read = parse_key_set(json.dumps({"keys": keys}))

    assert read.find(KEY_ID) is not None
    assert read.find("k9") is None


async def test_an_issuer_that_drips_its_keys_does_not_hold_up_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlead_service.identity.jwks.FETCH_TIMEOUT_S", 0.2)
    ended = asyncio.Event()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while not ended.is_set():
            writer.write(b" ")
            await asyncio.sleep(0.02)

    async with site() as pages:
        pages.pages["/jwks"] = drip
        async with asyncio.timeout(20):
            await JwksUrl(pages.url("/jwks")).refresh()
        ended.set()


def test_ec_keys_count_too() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    jwk = jwt.algorithms.ECAlgorithm.to_jwk(private.public_key(), as_dict=True)

    assert parse_key_set(json.dumps({"keys": [jwk | {"kid": "e"}]})).find("e") is not None


async def test_keys_of_a_url_are_fetched_once_and_kept_while_the_url_is_away() -> None:
    """Only the configured URL is asked: a redirect is not followed, and a large answer is dropped."""
    document = json.dumps({"keys": [public_jwk(SECRET, kid=KEY_ID)]}).encode()
    async with site() as pages:
        pages.pages["/jwks"] = reply(document)
        config = AuthConfig(issuer=ISSUER, audience=AUDIENCE, jwks_url=pages.url("/jwks"))
        authenticator = build_authenticator(config)

        for credential in (token(jti="a"), token(jti="b"), token(jti="b")):
            await authenticator.authenticate(partial(str, credential))
        with pytest.raises(Unauthorized, match="does not publish"):
            await authenticator.authenticate(lambda: token(OTHER, header={"kid": "k2"}))

        assert [path for path, *_ in pages.asked] == ["/jwks"]


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"", "location: /other", status="302 Found"),
        reply(b" " * 300_000),
        reply(b"<html>"),
        reply(b"", status="500 No"),
        b"this is not HTTP\r\n\r\n",
        reply(b"{}").replace(b"length: 2", b"length: 20"),
        reply(json.dumps({"keys": [{"kty": "RSA", "kid": KEY_ID}]}).encode()),
    ],
    ids=["redirect", "large", "garbage", "error", "no http", "cut off", "no usable key"],
)
async def test_a_bad_answer_of_the_url_leaves_the_old_keys(answer: bytes) -> None:
    now = 0.0
    async with site() as pages:
        document = json.dumps({"keys": [public_jwk(SECRET, kid=KEY_ID)]}).encode()
        pages.pages["/jwks"] = pages.pages["/other"] = reply(document)
        keys = JwksUrl(pages.url("/jwks"), clock=lambda: now)
        await keys.refresh()
        pages.pages["/jwks"] = answer
        now = 1000.0

        await keys.refresh()

        assert keys.current().find(KEY_ID) is not None
        assert [path for path, *_ in pages.asked] == ["/jwks", "/jwks"]
