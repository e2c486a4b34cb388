"""The cookie of the console: the credential of a person, sealed, so that every gateway can open it.

The seal hides the credential from the browser's disk and from scripts. Who may do what is decided by
the credential inside, at each request: a revoked key ends its cookies too.
"""

import base64
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from pydantic import ValidationError

from fairlead_schema.errors import Unauthorized
from fairlead_schema.model import Model
from fairlead_service.config.configuration import ConfigError
from fairlead_service.identity.loopback import is_loopback

SEALED_LENGTH_MAX: Final = 16 * 1024
COOKIE_LENGTH_MAX: Final = 4000
"""Browsers drop a longer cookie without a word."""

Purpose: TypeAlias = Literal["cookie", "ticket", "flow"]


class SealedValue(Model):
    """What a seal holds: for what it was made, until when it counts, and its text."""

    purpose: Purpose
    until: int
    text: str
    id: str


class Sealer:
    """Seals and opens values. The first key seals, and every key opens, so that keys can rotate."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Raises ValueError without a key, and for a key of another length."""
        if not keys:
            raise ValueError("there is no key")
        self._boxes = [SecretBox(key) for key in keys]

    @classmethod
    def random(cls) -> Self:
        """A sealer of this process alone: its cookies end with it."""
        return cls([secrets.token_bytes(SecretBox.KEY_SIZE)])

    @classmethod
    def load(cls, path: Path) -> Self:
        """The keys of a file, one a line, in base64. Raises ConfigError."""
        try:
            lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
            return cls([base64.b64decode(line, validate=True) for line in lines])
        except (OSError, ValueError) as error:
            reason = f"{path}: {error}; write 32 random bytes in base64, one key a line"
            raise ConfigError("auth", "cookie_key_file", reason) from error

    def seal(self, purpose: Purpose, text: str, *, until: int) -> str:
        """The text as an opaque value that counts until then."""
        value = SealedValue(purpose=purpose, until=until, text=text, id=secrets.token_hex(12))
        sealed = self._boxes[0].encrypt(value.model_dump_json().encode())
        return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    def open(self, purpose: Purpose, sealed: str, *, now_ms: int) -> SealedValue:
        """What a seal holds. Raises Unauthorized."""
        value = self._open(sealed)
        if value is None or value.purpose != purpose:
            raise Unauthorized("The sign-in of this browser cannot be read: sign in again")
        if value.until <= now_ms:
            raise Unauthorized("The sign-in of this browser is over: sign in again")
        return value

    def _open(self, sealed: str) -> SealedValue | None:
        if len(sealed) > SEALED_LENGTH_MAX:
            return None
        try:
            raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        except ValueError:
            return None
        for box in self._boxes:
            try:
                return SealedValue.model_validate_json(box.decrypt(raw))
            except (CryptoError, ValidationError, ValueError):
                continue
        return None


def new_cookie_key() -> str:
    """A line for a file of cookie keys."""
    return base64.b64encode(secrets.token_bytes(SecretBox.KEY_SIZE)).decode()


def cookie_name(host: str) -> str:
    """The name of the cookie on this server.

    Browsers share the cookies of one machine among its ports, so the name of a local one has the port.
    """
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if is_loopback(name or port):
        return f"fairlead-{port if name else 80}"
    return "__Host-fairlead"


def set_cookie(host: str, value: str, *, max_age_s: int) -> str:
    """The header that stores the cookie, or with no age removes it."""
    name = cookie_name(host)
    secure = "; Secure" if name.startswith("__Host-") else ""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age_s}{secure}"
