"""The `gemini` protocol: Google's `generateContent` API, streamed as server-sent events."""

from fairlead_llm.gemini.request import body, headers, path
from fairlead_llm.gemini.stream import finish, start, step

__all__ = ["body", "finish", "headers", "path", "start", "step"]
