"""A message of NATS on a subject to which somebody listens."""

from typing import NamedTuple


class HeardMessage(NamedTuple):
    """One message."""

    subject: str
    data: bytes
