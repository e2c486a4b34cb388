"""Principals as parts of subjects and as names of consumers, and back.

The name of a user holds dots and slashes, and a token of a subject may not. So everything after `user:`
is written in base64url without padding. The other names are tokens as they are.
"""

import base64
import binascii
from hashlib import sha256
from typing import Final

from fairlead_schema.identity.principal import PrincipalName

_USER: Final = "user:"
UNREADABLE: Final = _USER
"""What a token names that no principal has: no valid name, so that nobody acts under it."""
_DIGITS: Final = 32


def principal_token(name: PrincipalName) -> str:
    """The token of a subject that names a principal."""
    if not name.startswith(_USER):
        return name
    encoded = base64.urlsafe_b64encode(name.removeprefix(_USER).encode())
    return _USER + encoded.decode().rstrip("=")


def parse_principal_token(token: str) -> str:
    """The name that a token of a subject stands for. Each name has exactly one token."""
    if not token.startswith(_USER):
        return token
    encoded = token.removeprefix(_USER)
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        name = _USER + base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return UNREADABLE
    return name if principal_token(name) == token else UNREADABLE


def principal_consumer_part(name: PrincipalName) -> str:
    """What the name of a consumer says of its principal. A consumer's name is short."""
    if not name.startswith(_USER):
        return name
    return _USER + sha256(name.encode()).hexdigest()[:_DIGITS]
