"""The Gemini generateContent protocol seen from the server.

The path names the model and the verb: the application adds them to the body as `model` and `stream`.
"""

from fairlead_cli.sim.gemini.answer import (
    ID_PREFIX,
    SENDS_RETRY_AFTER,
    error_body,
    full_body,
    stream_frames,
)
from fairlead_cli.sim.gemini.request import parse_request, refusal_reason

__all__ = [
    "ID_PREFIX",
    "SENDS_RETRY_AFTER",
    "error_body",
    "full_body",
    "parse_request",
    "refusal_reason",
    "stream_frames",
]
