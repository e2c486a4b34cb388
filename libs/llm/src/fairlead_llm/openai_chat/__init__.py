"""The `openai-chat` protocol: Chat Completions, as OpenAI and its many compatibles speak it."""

from fairlead_llm.openai_chat.request import body, headers, path
from fairlead_llm.openai_chat.stream import finish, start, step

__all__ = ["body", "finish", "headers", "path", "start", "step"]
