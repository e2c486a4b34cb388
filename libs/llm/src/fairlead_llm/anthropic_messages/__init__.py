"""The `anthropic-messages` protocol: the Messages API of Anthropic and its gateways."""

from fairlead_llm.anthropic_messages.request import body, headers, path
from fairlead_llm.anthropic_messages.stream import finish, start, step

__all__ = ["body", "finish", "headers", "path", "start", "step"]
