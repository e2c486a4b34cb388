"""From the canonical request to a Gemini body.

Options go into the body unchanged. `generationConfig` is merged with the request's controls, and
tools in the options are hosted tools that join the request's tools.
"""

from typing import Any
from urllib.parse import quote

from fairlead_llm.gemini.contents import build_contents
from fairlead_llm.gemini.schema import translate_schema
from fairlead_schema.provider.request import ForcedTool, ModelRequest, ToolDefinition

_OWN_OPTIONS = frozenset({"generationConfig", "tools"})


def path(request: ModelRequest) -> str:
    """The path of the model. A name without a slash gets the prefix `models/`."""
    name = request.model if "/" in request.model else f"models/{request.model}"
    return f"/v1beta/{quote(name)}:streamGenerateContent?alt=sse"


def headers(key: str | None) -> dict[str, str]:
    return {} if key is None else {"x-goog-api-key": key}


def body(request: ModelRequest) -> dict[str, Any]:
    """The JSON body. Options win. Raises UnsendableRequest."""
    fields: dict[str, Any] = {}
    if config := _config(request):
        fields["generationConfig"] = config
    fields |= _tools(request)
    if system := [{"text": part} for part in request.system if part]:
        fields["systemInstruction"] = {"parts": system}
    fields |= {name: value for name, value in request.options.items() if name not in _OWN_OPTIONS}
    # Contents come last, so that an earlier request is a prefix of a later one.
    return fields | {"contents": build_contents(request)}


def _config(request: ModelRequest) -> dict[str, Any]:
    controls = request.generation
    fields = {
        "maxOutputTokens": controls.max_tokens,
        "temperature": controls.temperature,
        "topP": controls.top_p,
        "stopSequences": list(controls.stop) or None,
    }
    config: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if request.output_schema is not None:
        config |= {"responseMimeType": "application/json"}
        config |= {"responseJsonSchema": request.output_schema}
    return config | (request.options.get("generationConfig") or {})


def _tools(request: ModelRequest) -> dict[str, Any]:
    hosted = request.options.get("tools") or ()
    if not request.tools:
        return {"tools": [*hosted]} if hosted else {}
    functions = {"functionDeclarations": [_function(tool) for tool in request.tools]}
    fields: dict[str, Any] = {"tools": [functions, *hosted]}
    if calling := _calling_config(request):
        fields["toolConfig"] = {"functionCallingConfig": calling}
    return fields


def _function(tool: ToolDefinition) -> dict[str, Any]:
    """A function with its schema in Gemini's dialect, or in JSON Schema if the dialect differs."""
    function = {"name": tool.name, "description": tool.description}
    schema = translate_schema(tool.input_schema)
    if schema is None:
        return function | {"parametersJsonSchema": tool.input_schema}
    return function | {"parameters": schema} if schema.get("properties") else function


def _calling_config(request: ModelRequest) -> dict[str, Any] | None:
    match request.tool_choice:
        case ForcedTool(name=name):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case "required":
            return {"mode": "ANY"}
        case "none":
            return {"mode": "NONE"}
        case "auto":
            return None
