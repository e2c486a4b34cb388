"""JWTs of NATS that a test signs itself: an operator, an account and a user."""

import base64
import json
import secrets
import time
from typing import Any, Final

import nkeys

_HEADER: Final = {"typ": "JWT", "alg": "ed25519-nkey"}


class SigningKey:
    """An nkey pair that signs JWTs."""

    def __init__(self, prefix: int) -> None:
        self.seed: bytes = nkeys.encode_seed(secrets.token_bytes(32), prefix)
        self._pair = nkeys.from_seed(bytearray(self.seed))
        self.public: str = self._pair.public_key.decode()

    def sign(self, subject: str, name: str, claims: dict[str, Any], **more: object) -> str:
        """A JWT of this key about a subject."""
        body = {
            "jti": secrets.token_hex(16),
            "iat": int(time.time()),
            "iss": self.public,
            "sub": subject,
            "name": name,
            "nats": {"version": 2, **claims},
            **more,
        }
        text = f"{_encode(json.dumps(_HEADER).encode())}.{_encode(json.dumps(body).encode())}"
        return f"{text}.{_encode(self._pair.sign(text.encode()))}"


def operator_key() -> SigningKey:
    return SigningKey(nkeys.PREFIX_BYTE_OPERATOR)


def account_key() -> SigningKey:
    return SigningKey(nkeys.PREFIX_BYTE_ACCOUNT)


def user_key() -> SigningKey:
    return SigningKey(nkeys.PREFIX_BYTE_USER)


def credentials(jwt: str, seed: bytes) -> str:
    """The text of a credentials file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed.decode()}\n------END USER NKEY SEED------\n"
    )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
