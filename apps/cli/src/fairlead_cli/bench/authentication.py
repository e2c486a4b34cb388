"""Processor time that the door of the gateway adds to a request: rules, credentials, limits."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from fairlead_gateway.http.origin_rules import OriginRules, browser_headers, complaint
from fairlead_gateway.http.principal_limits import LimitSettings, PrincipalLimits
from fairlead_service.config.auth import AuthConfig
from fairlead_service.identity.authenticator import Authenticator, build_authenticator
from fairlead_service.identity.credentials import credential_of
from fairlead_service.identity.key_file import add_key
from fairlead_service.identity.keys import mint_key

STATIC_KEY: Final = "authentication by a static key, µs"
KNOWN_TOKEN: Final = "authentication by a known token, µs"  # noqa: S105 - the name of a figure
NEW_TOKEN: Final = "authentication by a new token, µs"  # noqa: S105 - the name of a figure
ISSUER, AUDIENCE, KEY_ID = "https://id.example", "fairlead", "bench"
UNLIMITED: Final = LimitSettings(requests_per_s=1e9, request_burst=10**9)


async def measure_authentication(directory: Path, *, count: int) -> dict[str, float]:
    """Microseconds of processor time for each request, by kind of credential."""
    keys, jwks = directory / "bench-keys.json", directory / "bench-jwks.json"
    key, entry = mint_key(["user"])
    add_key(keys, entry)
    private = ec.generate_private_key(ec.SECP256R1())
    public = ECAlgorithm.to_jwk(private.public_key(), as_dict=True) | {"kid": KEY_ID, "use": "sig"}
    jwks.write_text(json.dumps({"keys": [public]}))
    config = AuthConfig(keys_file=str(keys), issuer=ISSUER, audience=AUDIENCE, jwks_file=str(jwks))
    authenticator = build_authenticator(config)
    known = _token(private, 0)
    fresh = iter([_token(private, number) for number in range(1, count // 10 + 1)])
    return {
        STATIC_KEY: await _time(authenticator, lambda: key, count),
        KNOWN_TOKEN: await _time(authenticator, lambda: known, count),
        NEW_TOKEN: await _time(authenticator, lambda: next(fresh), count // 10),
    }


def _token(private: ec.EllipticCurvePrivateKey, number: int) -> str:
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": f"user-{number}",
        "iat": now,
        "exp": now + 600,
        "tenant": "default",
        "roles": ["user"],
    }
    return jwt.encode(claims, private, algorithm="ES256", headers={"kid": KEY_ID})


async def _time(authenticator: Authenticator, credential: Callable[[], str], count: int) -> float:
    """The door as the gateway runs it, for each of `count` requests."""
    rules, limits = OriginRules(), PrincipalLimits(UNLIMITED)
    headers = [(b"host", b"127.0.0.1:8420"), (b"content-type", b"application/json")]
    credentials = [f"Bearer {credential()}" for _ in range(count)]
    start = time.process_time()
    for authorization in credentials:
        assert complaint(rules, browser_headers(headers)) is None
        principal = await authenticator.authenticate(partial(credential_of, authorization))
        assert principal.may("session:write")
        limits.take_request(principal.name)
    return (time.process_time() - start) * 1_000_000 / count
