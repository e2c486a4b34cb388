"""From the canonical request to a Gemini body.

Options are sent as they are; `generationConfig` joins what the request says, and tools among them
are hosted ones that join the request's own.
"""

from typing import Any
from urllib.parse import quote

from fairlead_llm.gemini.contents import contents
from fairlead_llm.gemini.dialect import translated
from fairlead_schema.provider.request import ForcedTool, ModelRequest, ToolDefinition

_OURS = frozenset({"generationConfig", "tools"})


def path(request: ModelRequest) -> str:
    """A bare name is a model; one with a slash says itself what it is."""
    name = request.model if "/" in request.model else f"models/{request.model}"
    return f"/v1beta/{quote(name)}:streamGenerateContent?alt=sse"


def headers(key: str | None) -> dict[str, str]:
    return {} if key is None else {"x-goog-api-key": key}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body; the request's own options win. Raises Unsendable."""
    sent: dict[str, Any] = {}
    if config := _config(request):
        sent["generationConfig"] = config
    sent |= _tools(request)
    if system := [{"text": part} for part in request.system if part]:
        sent["systemInstruction"] = {"parts": system}
    sent |= {name: value for name, value in request.options.items() if name not in _OURS}
    # What grows comes last, so that the whole of an earlier request is a prefix of a later one.
    return sent | {"contents": contents(request)}


def _config(request: ModelRequest) -> dict[str, Any]:
    controls = request.generation
    named = {
        "maxOutputTokens": controls.max_tokens,
        "temperature": controls.temperature,
        "topP": controls.top_p,
        "stopSequences": list(controls.stop) or None,
    }
    said = {name: value for name, value in named.items() if value is not None}
    return said | (request.options.get("generationConfig") or {})


def _tools(request: ModelRequest) -> dict[str, Any]:
    hosted = request.options.get("tools") or ()
    if not request.tools:
        return {"tools": [*hosted]} if hosted else {}
    functions = {"functionDeclarations": [_function(tool) for tool in request.tools]}
    sent: dict[str, Any] = {"tools": [functions, *hosted]}
    if calling := _calling(request):
        sent["toolConfig"] = {"functionCallingConfig": calling}
    return sent


def _function(tool: ToolDefinition) -> dict[str, Any]:
    """The schema in the dialect where that is exact, else as it is; no parameters need none."""
    said = {"name": tool.name, "description": tool.description}
    schema = translated(tool.input_schema)
    if schema is None:
        return said | {"parametersJsonSchema": tool.input_schema}
    return said | {"parameters": schema} if schema.get("properties") else said


def _calling(request: ModelRequest) -> dict[str, Any] | None:
    match request.tool_choice:
        case ForcedTool(name=name):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case "required":
            return {"mode": "ANY"}
        case "none":
            return {"mode": "NONE"}
        case "auto":
            return None
