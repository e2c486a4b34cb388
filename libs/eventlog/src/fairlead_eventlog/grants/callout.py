"""The signed messages of an auth callout: what a server asks about a connection, and the answer.

A server asks the callout about each connection without a static key. The answer holds a user of a tenant's
account with its grants, signed with the issuer's key, or the reason of a refusal.
"""

import base64
import binascii
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import nkeys

from fairlead_eventlog.errors import CredentialsUnusable
from fairlead_eventlog.grants.tenants import (
    TOOL_ANSWER_MIN_MAX,
    principal_grants,
    tenant_account,
)
from fairlead_schema.identity.nats_address import CLIENT_PAYLOAD_BYTES_MAX, CLIENT_SUBSCRIPTIONS_MAX
from fairlead_schema.identity.principal import Principal
from fairlead_schema.ids import TenantId

CALLOUT: Final = "callout"
"""The name of the key with which the callout connects."""
ISSUER: Final = "callout-issuer"
"""The name of the key with which the callout signs. A server takes its users in every account."""
ACCOUNT: Final = "CALLOUT"
REQUESTS: Final = "$SYS.REQ.USER.AUTH"
_NS_PER_MIN: Final = 60 * 10**9
_PARTS: Final = 3


class BadCalloutRequest(ValueError):
    """A message is no question about a connection."""


@dataclass(frozen=True, slots=True)
class CalloutRules:
    """Who signs users, and the tenants that have an account for them."""

    issuer: str
    tenants: tuple[TenantId, ...]


@dataclass(frozen=True, slots=True)
class CalloutRequest:
    """What a server asks: who is the client that shows this credential?"""

    server: str
    user_key: str
    """The key of the user that the answer must name."""
    credential: str | None
    """The token or the password of the client."""
    host: str


class CalloutIssuer:
    """Signs answers with the issuer's key."""

    def __init__(self, seed_file: Path) -> None:
        """Read the seed. Raises CredentialsUnusable, which never shows the seed."""
        reason = "not the nkey seed of an account; move the file away to get a new one"
        try:
            self._pair = nkeys.from_seed(bytearray(seed_file.read_bytes().strip()))
        except OSError as error:
            advice = f"{error.strerror}; write it with `fairlead provision --nats-auth --callout`"
            raise CredentialsUnusable("the key file", str(seed_file), advice) from error
        except (nkeys.NkeysError, ValueError):
            raise CredentialsUnusable("the key file", str(seed_file), reason) from None
        self.public: str = self._pair.public_key.decode()
        if not self.public.startswith("A"):
            raise CredentialsUnusable("the key file", str(seed_file), reason)

    def allow(
        self, request: CalloutRequest, principal: Principal, *, now_s: int, expires_s: int
    ) -> bytes:
        """The answer that connects a client as a principal until a time."""
        granted = principal_grants(principal)
        user = {
            "type": "user",
            "pub": {"allow": list(granted.publish)},
            "sub": {"allow": list(granted.subscribe)},
            "resp": {"max": 1, "ttl": TOOL_ANSWER_MIN_MAX * _NS_PER_MIN},
            "subs": CLIENT_SUBSCRIPTIONS_MAX,
            "payload": CLIENT_PAYLOAD_BYTES_MAX,
            "data": -1,
        }
        claims = {
            "sub": request.user_key,
            "aud": tenant_account(principal.tenant),
            "name": principal.name,
            "exp": expires_s,
        }
        signed = self._sign(claims, user, now_s)
        return self._answer(request, {"jwt": signed}, now_s)

    def refuse(self, request: CalloutRequest, reason: str, *, now_s: int) -> bytes:
        """The answer that refuses a client. The server logs the reason and keeps it from the client."""
        return self._answer(request, {"error": reason}, now_s)

    def _answer(self, request: CalloutRequest, verdict: Mapping[str, str], now_s: int) -> bytes:
        claims = {"sub": request.user_key, "aud": request.server}
        return self._sign(claims, {"type": "authorization_response", **verdict}, now_s).encode()

    def _sign(self, claims: Mapping[str, object], body: Mapping[str, object], now_s: int) -> str:
        whole = {
            "jti": secrets.token_hex(16),
            "iat": now_s,
            "iss": self.public,
            **claims,
            "nats": {"version": 2, **body},
        }
        head = _encode(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
        text = f"{head}.{_encode(json.dumps(whole).encode())}"
        return f"{text}.{_encode(self._pair.sign(text.encode()))}"


def parse_request(data: bytes) -> CalloutRequest:
    """Read the question of a server. Raises BadCalloutRequest.

    Its signature proves nothing, because every server signs with a key of its own. That only servers
    publish in the callout's account does.
    """
    try:
        parts = data.decode().split(".")
        if len(parts) != _PARTS:
            raise BadCalloutRequest(
                "not a signed question; is the callout's account open to others?"
            )
        body: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        asked = body["nats"]
        options = asked["connect_opts"]
        credential = options.get("auth_token") or options.get("pass") or None
        return CalloutRequest(
            server=str(asked["server_id"]["id"]),
            user_key=str(asked["user_nkey"]),
            credential=None if credential is None else str(credential),
            host=str(asked.get("client_info", {}).get("host", "")),
        )
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise BadCalloutRequest(f"the question lacks a field: {error}") from error
    except (json.JSONDecodeError, binascii.Error) as error:
        raise BadCalloutRequest(f"the question cannot be read: {error}") from error


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
