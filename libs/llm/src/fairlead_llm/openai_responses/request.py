"""From the canonical request to a Responses body.

Options go into the body unchanged, except Fairlead's own: `native_system` (false: chronological
system messages become user text) and `sampling` (whether the model takes temperature and top_p).
Tools in the options are hosted tools and join the request's tools.
"""

import re
from typing import Any

from fairlead_llm.calls.tool_schema import with_object_root
from fairlead_llm.errors import UnsendableRequest
from fairlead_llm.openai_responses.items import build_items
from fairlead_schema.provider.request import ForcedTool, ModelRequest, ToolChoice, ToolDefinition

# These models return encrypted reasoning and refuse sampling controls.
_REASONING_MODEL = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")
_OWN_OPTIONS = frozenset({"native_system", "sampling", "tools"})


def path(_request: ModelRequest) -> str:
    return "/v1/responses"


def headers(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body. Options win over everything but streaming. Raises UnsendableRequest.

    The provider stores nothing unless the options ask for it, because the log has everything.
    """
    options = {name: value for name, value in request.options.items() if name not in _OWN_OPTIONS}
    stored = options.get("store") is True
    native_system = request.options.get("native_system") is not False
    fields = {"model": request.model} | _tools(request) | _generation(request)
    if request.cache_key is not None:
        fields["prompt_cache_key"] = request.cache_key
    fields["store"] = stored
    if not stored and _reasons(request):
        fields["include"] = ["reasoning.encrypted_content"]
    # The input comes last, so that an earlier request is a prefix of a later one.
    items = build_items(request, stored=stored, native_system=native_system)
    return fields | options | _text(request) | {"stream": True, "input": items}


def _text(request: ModelRequest) -> dict[str, Any]:
    """The schema of the answer, beside other options of the text.

    It is not strict, because a strict schema has to follow rules that a caller need not know.
    """
    if request.output_schema is None:
        return {}
    format_ = {
        "type": "json_schema",
        "name": "answer",
        "schema": request.output_schema,
        "strict": False,
    }
    return {"text": {**(request.options.get("text") or {}), "format": format_}}


def _reasons(request: ModelRequest) -> bool:
    return _REASONING_MODEL.search(request.model) is not None or "reasoning" in request.options


def _tools(request: ModelRequest) -> dict[str, Any]:
    tools = [*(_tool(tool) for tool in request.tools), *(request.options.get("tools") or ())]
    if not tools:
        return {}
    if request.tool_choice == "auto":
        return {"tools": tools}
    return {"tools": tools, "tool_choice": _choice(request.tool_choice)}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    """A function tool. `strict` is explicit, because its default is true."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": with_object_root(tool.input_schema),
        "strict": False,
    }


def _choice(choice: ToolChoice) -> object:
    if isinstance(choice, ForcedTool):
        return {"type": "function", "name": choice.name}
    return choice


def _generation(request: ModelRequest) -> dict[str, Any]:
    controls = request.generation
    if controls.stop:
        raise UnsendableRequest("The Responses API takes no stop sequences")
    samples = request.options.get("sampling", _REASONING_MODEL.search(request.model) is None)
    fields = {
        "max_output_tokens": controls.max_tokens,
        "temperature": controls.temperature if samples else None,
        "top_p": controls.top_p if samples else None,
    }
    return {name: value for name, value in fields.items() if value is not None}
