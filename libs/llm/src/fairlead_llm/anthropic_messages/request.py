"""From the canonical request to a Messages body.

Options go into the body unchanged, except Fairlead's own: `native_system` (the model knows
chronological system messages), `sampling` (false: the model refuses temperature and top_p), `cache`
(false: no breakpoints; or their time to live, `5m` or `1h`). Tools in the options are hosted tools
and join the request's tools. Beta features are a header: `anthropic-beta`.
"""

from typing import Any

from fairlead_llm.anthropic_messages.cache import mark_breakpoints
from fairlead_llm.anthropic_messages.messages import append_continue_message, build_messages
from fairlead_llm.calls.tool_schema import with_object_root
from fairlead_llm.errors import UnsendableRequest
from fairlead_schema.provider.request import ForcedTool, ModelRequest, ToolDefinition

VERSION = "2023-06-01"
# The API requires a limit. Thinking counts against it, so a thinking budget is added.
MAX_TOKENS = 4096

_OWN_OPTIONS = frozenset({"native_system", "sampling", "cache", "tools"})


def path(_request: ModelRequest) -> str:
    return "/v1/messages"


def headers(key: str | None) -> dict[str, str]:
    version = {"anthropic-version": VERSION}
    return version if key is None else version | {"x-api-key": key}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body. Options win over everything but streaming. Raises UnsendableRequest."""
    native_system = request.options.get("native_system") is True
    system = [{"type": "text", "text": part} for part in request.system if part.strip()]
    fields: dict[str, Any] = {"model": request.model} | _generation(request) | _tools(request)
    if system:
        fields["system"] = system
    fields |= {name: value for name, value in request.options.items() if name not in _OWN_OPTIONS}
    if request.output_schema is not None:
        format_ = {"type": "json_schema", "schema": request.output_schema}
        fields["output_config"] = {**(fields.get("output_config") or {}), "format": format_}
    # Messages come last, so that an earlier request is a prefix of a later one.
    fields |= {"stream": True, "messages": build_messages(request, native_system=native_system)}
    fields = mark_breakpoints(fields, request.options.get("cache"))
    # The continue message comes after the breakpoints, because later requests do not repeat it.
    return fields | {"messages": append_continue_message(fields["messages"])}


def _tools(request: ModelRequest) -> dict[str, Any]:
    """The tools and the tool choice. The choice `none` sends no tools (O-28)."""
    tools = [*(_tool(tool) for tool in request.tools), *(request.options.get("tools") or ())]
    if not tools or request.tool_choice == "none":
        return {}
    choice = _choice(request)
    return {"tools": tools} | ({"tool_choice": choice} if choice else {})


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": with_object_root(tool.input_schema),
    }


def _choice(request: ModelRequest) -> dict[str, str] | None:
    if request.tool_choice == "auto":
        return None
    if _thinking(request).get("type") == "enabled":
        raise UnsendableRequest("A tool cannot be forced while the model thinks with a budget")
    if isinstance(request.tool_choice, ForcedTool):
        return {"type": "tool", "name": request.tool_choice.name}
    return {"type": "any"}


def _generation(request: ModelRequest) -> dict[str, Any]:
    """Generation controls. A thinking model refuses sampling controls, so they are left out."""
    controls, thinking = request.generation, _thinking(request)
    samples = request.options.get("sampling") is not False
    samples = samples and thinking.get("type", "disabled") == "disabled"
    budget = thinking.get("budget_tokens") or 0
    fields = {
        "max_tokens": controls.max_tokens or MAX_TOKENS + budget,
        "temperature": controls.temperature if samples else None,
        "top_p": controls.top_p if samples else None,
        "stop_sequences": list(controls.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _thinking(request: ModelRequest) -> dict[str, Any]:
    thinking = request.options.get("thinking")
    return thinking if isinstance(thinking, dict) else {}
