"""How much a tool server may say. A server that floods is cut off; nobody else notices."""

from typing import Final

# One message, whichever way it comes: a longer one ends the connection.
MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024
# What is no message, or is one that nobody listens to, within some seconds: more ends it too.
NOISE_BYTES_MAX: Final = 4 * 1024 * 1024
NOISE_S: Final = 10.0
# Notifications that are taken in one second; the rest is dropped unread.
NOTIFICATIONS_MAX: Final = 100
TOOLS_MAX: Final = 512
PAGES_MAX: Final = 64
# What is kept of a process's last words.
WORDS_BYTES_MAX: Final = 1024
DESCRIPTION_LENGTH_MAX: Final = 20_000
