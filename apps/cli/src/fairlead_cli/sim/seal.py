"""Signatures on reasoning: made by the simulated provider, and known again when they come back."""

import base64
import binascii
import hmac
from hashlib import blake2b

_KEY = b"fairlead-sim"
_BYTES = 24


def seal(text: str) -> str:
    """A signature of the text, the same at every time."""
    return base64.b64encode(_mac(text.encode())).decode()


def genuine(text: str, signature: object) -> bool:
    """Whether the signature is ours and for this text."""
    return isinstance(signature, str) and hmac.compare_digest(
        seal(text).encode(), signature.encode()
    )


def closed(text: str) -> str:
    """The text as content that only we can open."""
    held = text.encode()
    return base64.b64encode(_mac(held) + held).decode()


def opened(content: object) -> str | None:
    """The text of such content, or None when it is not ours or was altered.

    Google's client writes bytes back in the other alphabet of base64: both are the same content.
    """
    try:
        held = base64.b64decode(str(content), altchars=_alphabet(str(content)), validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, text = held[:_BYTES], held[_BYTES:]
    return text.decode(errors="replace") if hmac.compare_digest(_mac(text), mac) else None


def _alphabet(text: str) -> bytes:
    return b"-_" if "-" in text or "_" in text else b"+/"


def _mac(held: bytes) -> bytes:
    return blake2b(held, key=_KEY, digest_size=_BYTES).digest()
