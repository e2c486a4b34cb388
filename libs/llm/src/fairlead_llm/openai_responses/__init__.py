"""The `openai-responses` protocol: OpenAI's Responses API, used without server-side state."""

from fairlead_llm.openai_responses.request import body, headers, path
from fairlead_llm.openai_responses.stream import finish, start, step

__all__ = ["body", "finish", "headers", "path", "start", "step"]
