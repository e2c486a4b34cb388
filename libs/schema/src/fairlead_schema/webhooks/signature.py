"""Signs and verifies deliveries, in the form of the Standard Webhooks specification.

A signature covers the id of the delivery, the time and the body, so that none of them can be exchanged.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final

ID_HEADER: Final = "webhook-id"
TIME_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the beginning of a secret
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64
VERSION: Final = "v1"
TOLERANCE_S: Final = 300
TIME_LENGTH_MAX: Final = 15
"""Seconds have ten digits for centuries, and a number of thousands of digits cannot be read."""


class SignatureInvalid(ValueError):
    """A delivery is not from Fairlead, was changed on its way, or is too old. The text says which."""


def sign(secret: str, delivery_id: str, time_s: int, body: bytes) -> str:
    """The signature of one secret. Raises ValueError for a text that is no secret."""
    content = f"{delivery_id}.{time_s}.".encode(errors="replace") + body
    digest = hmac.new(secret_key(secret), content, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"


def signed_headers(
    secrets: Iterable[str], delivery_id: str, time_s: int, body: bytes
) -> dict[str, str]:
    """The headers of a delivery, with one signature for each secret that is in force."""
    signatures = (sign(secret, delivery_id, time_s, body) for secret in secrets)
    return {
        ID_HEADER: delivery_id,
        TIME_HEADER: str(time_s),
        SIGNATURE_HEADER: " ".join(signatures),
    }


def verify(
    secrets: Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    now_s: float,
    tolerance_s: float = TOLERANCE_S,
) -> str:
    """The id of a delivery that one of the secrets signed. Raises SignatureInvalid."""
    sent = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in (ID_HEADER, TIME_HEADER, SIGNATURE_HEADER) if not sent.get(name)]
    if missing:
        raise SignatureInvalid(f"the request has no header {missing[0]}")
    delivery_id, time_text = sent[ID_HEADER], sent[TIME_HEADER]
    if not (time_text.isascii() and time_text.isdigit() and len(time_text) <= TIME_LENGTH_MAX):
        raise SignatureInvalid(f"{TIME_HEADER} is no number of seconds")
    if abs(now_s - int(time_text)) > tolerance_s:
        raise SignatureInvalid(f"the request is more than {tolerance_s:g} s old, or of the future")
    received = [text.encode(errors="replace") for text in sent[SIGNATURE_HEADER].split(" ")]
    expected = [sign(secret, delivery_id, int(time_text), body).encode() for secret in secrets]
    # Every pair is compared, so that the time tells nothing.
    matches = [hmac.compare_digest(one, other) for one in expected for other in received]
    if not any(matches):
        raise SignatureInvalid("no signature fits: the secret is another one, or the body changed")
    return delivery_id


def secret_key(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"a secret is {SECRET_PREFIX} and base64") from None
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(f"a secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes")
    return key


def secret_text(key: bytes) -> str:
    """A secret as people copy it."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def secret_id(secret: str) -> str:
    """What tells the secrets of a webhook apart without showing them."""
    return hashlib.sha256(secret.encode()).hexdigest()[:12]
