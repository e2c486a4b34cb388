"""Limits on what a tool server may send. A server that exceeds them is disconnected."""

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
