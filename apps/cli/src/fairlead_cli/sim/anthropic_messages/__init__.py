"""The Anthropic Messages protocol seen from the server."""

from fairlead_cli.sim.anthropic_messages.answer import (
    ID_PREFIX,
    SENDS_RETRY_AFTER,
    error_body,
    full_body,
    stream_frames,
)
from fairlead_cli.sim.anthropic_messages.checks import refusal_reason
from fairlead_cli.sim.anthropic_messages.request import parse_request

__all__ = [
    "ID_PREFIX",
    "SENDS_RETRY_AFTER",
    "error_body",
    "full_body",
    "parse_request",
    "refusal_reason",
    "stream_frames",
]
