"""The OpenAI Responses protocol seen from the server."""

from fairlead_cli.sim.openai_responses.answer import (
    ID_PREFIX,
    SENDS_RETRY_AFTER,
    error_body,
    full_body,
    stream_frames,
)
from fairlead_cli.sim.openai_responses.request import parse_request, refusal_reason

__all__ = [
    "ID_PREFIX",
    "SENDS_RETRY_AFTER",
    "error_body",
    "full_body",
    "parse_request",
    "refusal_reason",
    "stream_frames",
]
