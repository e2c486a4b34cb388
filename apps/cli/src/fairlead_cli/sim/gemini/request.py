"""Parses a generateContent request, with the checks by which the API refuses one."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson

from fairlead_cli.sim.conversation import ConversationMessage, build_request, text_of
from fairlead_cli.sim.script import SimRequest
from fairlead_cli.sim.signatures import unseal

Content: TypeAlias = dict[str, Any]

# The API accepts this in place of a signature, for histories of other models.
_UNSIGNED = "skip_thought_signature_validator"
_ROLES = frozenset({"user", "model", "function", None})
_PARTS = frozenset(
    {
        *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
        *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
    }
)


def refusal_reason(body: object) -> str | None:
    if not isinstance(body, dict):
        return "Invalid JSON payload received."
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return "* GenerateContentRequest.contents: contents is not specified\n"
    for index, content in enumerate(contents):
        if reason := _check_shape(index, content):
            return reason
    if contents[-1].get("role") == "model" and not _part_values(contents[-1], "functionCall"):
        return "Please ensure that multiturn requests end with a user role or a function response."
    return _check_responses(contents) or _check_signatures(contents, str(body.get("model")))


def parse_request(body: dict[str, Any]) -> SimRequest:
    system = body.get("systemInstruction") or {}
    messages = [message for content in body["contents"] for message in _to_messages(content)]
    return build_request(
        [ConversationMessage("system", text_of(system.get("parts"))), *messages],
        model=body["model"],
        stream=body.get("stream") is True,
    )


def _to_messages(content: Content) -> list[ConversationMessage]:
    parts = content["parts"]
    text = text_of([part for part in parts if not part.get("thought")])
    if content.get("role") == "model":
        return [ConversationMessage("assistant", text, len(_part_values(content, "functionCall")))]
    responses = _part_values(content, "functionResponse")
    return [
        *(ConversationMessage("tool", _response_text(response)) for response in responses),
        ConversationMessage("user", text),
    ]


def _response_text(response: Content) -> str:
    """The text of a function's response: its first known field, else the whole response."""
    value = response.get("response")
    fields = value if isinstance(value, dict) else {}
    output = next(
        (fields[name] for name in ("output", "result", "error") if name in fields), fields
    )
    return output if isinstance(output, str) else orjson.dumps(output).decode()


def _check_shape(index: int, content: object) -> str | None:
    if not isinstance(content, dict) or content.get("role") not in _ROLES:
        return "Please use a valid role: user, model."
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        return (
            f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
        )
    if not all(isinstance(part, dict) and _PARTS & part.keys() for part in parts):
        return (
            f"* GenerateContentRequest.contents[{index}].parts: required oneof field 'data' must have "
            "one initialized field\n"
        )
    return None


def _check_responses(contents: Sequence[Content]) -> str | None:
    """The turn after function calls has as many function responses."""
    for index, content in enumerate(contents):
        responses = len(_part_values(content, "functionResponse"))
        calls = len(_part_values(contents[index - 1], "functionCall")) if index else 0
        if responses and not calls:
            return (
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if responses != calls:
            return (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
    if _part_values(contents[-1], "functionCall"):
        return "Please ensure that function call turn is followed by a function response turn."
    return None


def _check_signatures(contents: Sequence[Content], model: str) -> str | None:
    """A signature must come back on its own part. Gemini 3 needs one on a turn's first call."""
    user_indexes = [index for index, content in enumerate(contents) if _is_user_text(content)]
    current = user_indexes[-1] if user_indexes else 0
    for index, content in enumerate(contents):
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and signature != _UNSIGNED and unseal(signature) != _signed_name(part):
                return "Corrupted thought signature."
        calls = [part for part in content["parts"] if "functionCall" in part]
        needs_signature = "gemini-3" in model and index > current
        if needs_signature and calls and not calls[0].get("thoughtSignature"):
            return "Function call is missing a thought_signature in functionCall parts."
    return None


def _signed_name(part: Content) -> str:
    """The content of a part's signature: the function's name, or nothing for text."""
    call = part.get("functionCall")
    return str(call.get("name")) if isinstance(call, dict) else ""


def _is_user_text(content: Content) -> bool:
    return content.get("role") != "model" and any("text" in part for part in content["parts"])


def _part_values(content: Content, name: str) -> list[Content]:
    parts = content["parts"]
    return [part[name] for part in parts if isinstance(part.get(name), dict)]
