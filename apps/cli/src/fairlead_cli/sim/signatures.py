"""Signed and sealed reasoning: the simulated provider makes it and checks it when it comes back."""

import base64
import binascii
import hmac
from hashlib import blake2b

_KEY = b"fairlead-sim"
_MAC_BYTES = 24


def sign(text: str) -> str:
    """A signature of the text; the same text always has the same signature."""
    return base64.b64encode(_mac(text.encode())).decode()


def is_genuine(text: str, signature: object) -> bool:
    """Whether the signature is ours and for this text."""
    return isinstance(signature, str) and hmac.compare_digest(
        sign(text).encode(), signature.encode()
    )


def seal(text: str) -> str:
    """The text as opaque content that `unseal` reads back."""
    content = text.encode()
    return base64.b64encode(_mac(content) + content).decode()


def unseal(sealed: object) -> str | None:
    """The text of sealed content; None when the content is not ours or was altered.

    Google's client sends bytes back in the other base64 alphabet: both alphabets are accepted.
    """
    try:
        content = base64.b64decode(
            str(sealed), altchars=_base64_alphabet(str(sealed)), validate=True
        )
    except (binascii.Error, ValueError):
        return None
    mac, text = content[:_MAC_BYTES], content[_MAC_BYTES:]
    return text.decode(errors="replace") if hmac.compare_digest(_mac(text), mac) else None


def _base64_alphabet(text: str) -> bytes:
    return b"-_" if "-" in text or "_" in text else b"+/"


def _mac(content: bytes) -> bytes:
    return blake2b(content, key=_KEY, digest_size=_MAC_BYTES).digest()
