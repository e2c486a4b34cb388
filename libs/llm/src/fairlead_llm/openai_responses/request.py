"""From the canonical request to a Responses body."""

import re
from typing import Any

from fairlead_llm import openai_chat
from fairlead_llm.errors import Unsendable
from fairlead_llm.openai_responses.items import items
from fairlead_schema.request import ForcedTool, ModelRequest, ToolChoice

# These models reason: they give encrypted reasoning, and refuse sampling controls.
_REASONING_MODEL = re.compile(r"(?:^|/)(?:o\d|gpt-[5-9])")


def path(_request: ModelRequest) -> str:
    return "/v1/responses"


def headers(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body; the request's own options win, except over streaming. Raises Unsendable.

    Nothing is stored at the provider unless the options say so: the log holds the conversation.
    """
    stored = request.options.get("store") is True
    sent: dict[str, Any] = {"model": request.model, "input": items(request, stored=stored)}
    sent |= _tools(request) | _generation(request)
    if request.cache_key is not None:
        sent["prompt_cache_key"] = request.cache_key
    sent["store"] = stored
    if not stored and _reasons(request):
        sent["include"] = ["reasoning.encrypted_content"]
    return sent | request.options | {"stream": True}


def _reasons(request: ModelRequest) -> bool:
    return _REASONING_MODEL.search(request.model) is not None or "reasoning" in request.options


def _tools(request: ModelRequest) -> dict[str, Any]:
    """Chat's function tools, one level flatter. Unsaid strictness would be taken for strict."""
    if not request.tools:
        return {}
    functions = openai_chat.body(ModelRequest(request.model, tools=request.tools))["tools"]
    sent: dict[str, Any] = {
        "tools": [{"type": "function", **one["function"], "strict": False} for one in functions]
    }
    if request.tool_choice != "auto":
        sent["tool_choice"] = _choice(request.tool_choice)
    return sent


def _choice(choice: ToolChoice) -> object:
    if isinstance(choice, ForcedTool):
        return {"type": "function", "name": choice.name}
    return choice


def _generation(request: ModelRequest) -> dict[str, Any]:
    controls = request.generation
    if controls.stop:
        raise Unsendable("The Responses API takes no stop sequences")
    samples = _REASONING_MODEL.search(request.model) is None
    named = {
        "max_output_tokens": controls.max_tokens,
        "temperature": controls.temperature if samples else None,
        "top_p": controls.top_p if samples else None,
    }
    return {name: value for name, value in named.items() if value is not None}
