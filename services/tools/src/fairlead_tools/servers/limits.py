"""Limits on what a tool server may send, and the pauses of its connection.

A server that exceeds a limit is disconnected.
"""

from dataclasses import dataclass
from typing import Final

# One message. A longer one ends the connection.
MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
# Bytes within NOISE_S that are no message, or a message without a listener. More end the connection.
NOISE_BYTES_MAX: Final = 4 * 1024 * 1024
NOISE_S: Final = 10.0
# Notifications read in one second; the others are dropped.
NOTIFICATIONS_MAX: Final = 100
TOOLS_MAX: Final = 512
PAGES_MAX: Final = 64
# How much is kept of the end of a process's standard error.
ERROR_TAIL_BYTES_MAX: Final = 1024
DESCRIPTION_LENGTH_MAX: Final = 20_000


@dataclass(frozen=True, slots=True)
class ServerTimings:
    """Pauses that no operator needs to change; tests shorten them."""

    first_lists_s: float = 5.0
    """How long the service waits for the first lists before it answers without them."""
    reconnect_s: float = 0.5
    """Before a lost server is connected again. The pause doubles up to `reconnect_s_max`."""
    reconnect_s_max: float = 60.0
