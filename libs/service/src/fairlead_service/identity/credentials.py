"""Finds the credential of an HTTP request: a bearer token, or the password of Basic."""

import base64
import binascii
from typing import Final

from fairlead_schema.errors import Unauthorized

BASIC_USER: Final = "opencode"
CREDENTIAL_LENGTH_MAX: Final = 8192


def credential_of(authorization: str | None, query_token: str | None = None) -> str:
    """The key or token of a request. The header wins. Raises Unauthorized."""
    if authorization is None:
        if query_token:
            return _check_length(query_token)
        raise Unauthorized("Authentication required: send `Authorization: Bearer <token>`")
    scheme, _, value = _check_length(authorization).partition(" ")
    match scheme.lower():
        case "bearer":
            return value.strip()
        case "basic":
            return _password(value.strip())
        case _:
            raise Unauthorized("The authorization scheme is neither Bearer nor Basic")


def _password(encoded: str) -> str:
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise Unauthorized("The Basic credentials cannot be read") from error
    if user != BASIC_USER or not colon:
        raise Unauthorized(f"Basic credentials have the user {BASIC_USER!r} and a key as password")
    return password


def _check_length(text: str) -> str:
    if len(text) > CREDENTIAL_LENGTH_MAX:
        raise Unauthorized(f"The credentials exceed {CREDENTIAL_LENGTH_MAX} characters")
    return text
