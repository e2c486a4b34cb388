"""From the canonical request to a Messages body.

Options are sent as they are, except our own: `native_system` (the model knows chronological system
messages), `sampling` (false: it refuses temperature and top_p), `cache` (false: no breakpoints; or
their time to live, `5m` or `1h`). Tools in the options are hosted ones and join the request's own.
Beta features are a header: `anthropic-beta` among the request's or the endpoint's headers.
"""

from typing import Any

from fairlead_llm.anthropic_messages.cache import marked
from fairlead_llm.anthropic_messages.messages import continued, messages
from fairlead_llm.errors import Unsendable
from fairlead_llm.tool_schema import rooted
from fairlead_schema.provider.request import ForcedTool, ModelRequest, ToolDefinition

VERSION = "2023-06-01"
# The wire demands a bound; thinking is paid from it, so its budget comes on top.
MAX_TOKENS = 4096

_OURS = frozenset({"native_system", "sampling", "cache", "tools"})


def path(_request: ModelRequest) -> str:
    return "/v1/messages"


def headers(key: str | None) -> dict[str, str]:
    named = {"anthropic-version": VERSION}
    return named if key is None else named | {"x-api-key": key}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body; the request's own options win, except over streaming. Raises Unsendable."""
    native_system = request.options.get("native_system") is True
    system = [{"type": "text", "text": part} for part in request.system if part.strip()]
    sent: dict[str, Any] = {"model": request.model} | _generation(request) | _tools(request)
    if system:
        sent["system"] = system
    sent |= {name: value for name, value in request.options.items() if name not in _OURS}
    # What grows comes last, so that the whole of an earlier request is a prefix of a later one.
    sent |= {"stream": True, "messages": messages(request, native_system=native_system)}
    sent = marked(sent, request.options.get("cache"))
    # Added after the breakpoints: it is no part of what a later request begins with.
    return sent | {"messages": continued(sent["messages"])}


def _tools(request: ModelRequest) -> dict[str, Any]:
    """The tools and the choice among them; the choice of none is to have none (O-28)."""
    tools = [*(_tool(tool) for tool in request.tools), *(request.options.get("tools") or ())]
    if not tools or request.tool_choice == "none":
        return {}
    choice = _choice(request)
    return {"tools": tools} | ({"tool_choice": choice} if choice else {})


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": rooted(tool.input_schema),
    }


def _choice(request: ModelRequest) -> dict[str, str] | None:
    if request.tool_choice == "auto":
        return None
    if _thinking(request).get("type") == "enabled":
        raise Unsendable("A tool cannot be forced while the model thinks with a budget")
    if isinstance(request.tool_choice, ForcedTool):
        return {"type": "tool", "name": request.tool_choice.name}
    return {"type": "any"}


def _generation(request: ModelRequest) -> dict[str, Any]:
    """A model that thinks refuses sampling controls, so they are left out."""
    controls, thinking = request.generation, _thinking(request)
    samples = request.options.get("sampling") is not False
    samples = samples and thinking.get("type", "disabled") == "disabled"
    budget = thinking.get("budget_tokens") or 0
    named = {
        "max_tokens": controls.max_tokens or MAX_TOKENS + budget,
        "temperature": controls.temperature if samples else None,
        "top_p": controls.top_p if samples else None,
        "stop_sequences": list(controls.stop) or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _thinking(request: ModelRequest) -> dict[str, Any]:
    thinking = request.options.get("thinking")
    return thinking if isinstance(thinking, dict) else {}
