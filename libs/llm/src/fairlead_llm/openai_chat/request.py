"""From the canonical request to a Chat Completions body."""

import re
from typing import Any

from fairlead_llm.calls.tool_schema import with_object_root
from fairlead_llm.openai_chat.messages import build_messages
from fairlead_schema.provider.request import ForcedTool, ModelRequest, ToolChoice, ToolDefinition

# These models refuse `max_tokens`. Other models may not know `max_completion_tokens`.
_REASONING_MODEL = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")


def path(_request: ModelRequest) -> str:
    return "/v1/chat/completions"


def headers(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body. Options win over everything but streaming. Raises UnsendableRequest."""
    fields = {"model": request.model} | _tools(request) | _generation(request)
    if request.cache_key is not None:
        fields["prompt_cache_key"] = request.cache_key
    if request.output_schema is not None:
        schema = {"name": "answer", "schema": request.output_schema, "strict": False}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    fields |= request.options | {"stream": True, "stream_options": {"include_usage": True}}
    # Messages come last, so that an earlier request is a prefix of a later one.
    return {**fields, "messages": build_messages(request)}


def _tools(request: ModelRequest) -> dict[str, Any]:
    if not request.tools:
        return {}
    fields: dict[str, Any] = {"tools": [_tool(tool) for tool in request.tools]}
    if request.tool_choice != "auto":
        fields["tool_choice"] = _choice(request.tool_choice)
    return fields


def _choice(choice: ToolChoice) -> object:
    if isinstance(choice, ForcedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": with_object_root(tool.input_schema),
        },
    }


def _generation(request: ModelRequest) -> dict[str, Any]:
    controls = request.generation
    newer = _REASONING_MODEL.search(request.model) is not None
    fields = {
        "max_completion_tokens" if newer else "max_tokens": controls.max_tokens,
        "temperature": controls.temperature,
        "top_p": controls.top_p,
        "stop": list(controls.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
