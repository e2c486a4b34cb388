"""Structured output: finds the schema that a request asks for, and makes the smallest value that fits."""

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fairlead_cli.sim.script import Script, ScriptedCall
from fairlead_session.structured.contract import OUTPUT_TOOL

DEPTH_MAX: Final = 20


class WantedOutput(NamedTuple):
    """The schema of the answer, and whether a tool takes the answer."""

    schema: dict[str, Any]
    by_tool: bool = False

    def script(self) -> Script:
        """A turn that answers with a value of the schema."""
        text = json.dumps(sample_value(self.schema, self.schema))
        return Script(calls=(ScriptedCall(OUTPUT_TOOL, text),)) if self.by_tool else Script(text)


def find_wanted_output(body: dict[str, Any]) -> WantedOutput | None:
    """What a request of any protocol asks for; None for a free answer."""
    for tool in _tools(body):
        if tool.get("name") == OUTPUT_TOOL:
            keys = ("input_schema", "parameters", "parametersJsonSchema")
            schema: dict[str, Any] = next(
                (tool[key] for key in keys if isinstance(tool.get(key), dict)), {}
            )
            return WantedOutput(schema, by_tool=True)
    paths = (
        ("text", "format", "schema"),
        ("response_format", "json_schema", "schema"),
        ("output_config", "format", "schema"),
        ("generationConfig", "responseJsonSchema"),
    )
    for path in paths:
        value: Any = body
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return WantedOutput(value)
    return None


def sample_value(schema: Any, root: dict[str, Any], depth: int = 0) -> Any:  # noqa: ANN401 - any JSON
    """A small value that fits an ordinary schema. An unusual one may refuse it."""
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return None
    if "$ref" in schema:
        target: Any = root
        for key in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(key, {})
        return sample_value(target, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if variants := schema.get("anyOf") or schema.get("oneOf"):
        return sample_value(variants[0], root, depth + 1)
    return _sample_of_type(schema, root, depth)


def _sample_of_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:  # noqa: ANN401
    kind = schema.get("type", "object")
    match (kind[0] if isinstance(kind, list) else str(kind)).lower():
        case "object":
            properties = schema.get("properties", {})
            return {
                name: sample_value(properties.get(name, {"type": "string"}), root, depth + 1)
                for name in schema.get("required", ())
            }
        case "array":
            item = sample_value(schema.get("items", {"type": "string"}), root, depth + 1)
            return [item] * int(schema.get("minItems", 0))
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "x" * max(1, int(schema.get("minLength", 1)))


def _tools(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tools of a request, whatever its protocol wraps them in."""
    for tool in body.get("tools") or ():
        if not isinstance(tool, dict):
            continue
        function = tool.get("function")
        yield function if isinstance(function, dict) else tool
        yield from tool.get("functionDeclarations") or ()
