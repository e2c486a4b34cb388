"""The `openai-chat` protocol: Chat Completions of OpenAI and compatible vendors."""

from fairlead_llm.openai_chat.request import body, headers, path
from fairlead_llm.openai_chat.stream import finish, start, step

__all__ = ["body", "finish", "headers", "path", "start", "step"]
