"""Ids that the client mints, so that it can repeat a command until somebody answers.

Such an id ends in an underscore. No id that Fairlead mints does, so nobody takes one for the other.
"""

import secrets
import time
from typing import Final

from fairlead_schema.ids import BASE62, MessageId, SessionId

_LOW_48: Final = (1 << 48) - 1
_LETTERS: Final = bytes(ord(BASE62[byte % 62]) for byte in range(256))


def mint_message_id() -> MessageId:
    """A new id for a prompt. Ids sort by the time of their creation."""
    return f"msg_{_timestamp():012x}{_noise()}_"


def mint_session_id() -> SessionId:
    """A new id for a session. Newer sessions sort first."""
    return f"ses_{_timestamp() ^ _LOW_48:012x}{_noise()}_"


def _timestamp() -> int:
    """Milliseconds in steps of 1/4096, so that the ids of one process hardly ever share a step."""
    return (time.time_ns() * 4096 // 1_000_000) & _LOW_48


def _noise() -> str:
    return secrets.token_bytes(16).translate(_LETTERS).decode()
