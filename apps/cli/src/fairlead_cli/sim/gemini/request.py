"""What a generateContent request asks, and why the API would refuse it."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import orjson

from fairlead_cli.sim.conversation import Line, heard, text_of
from fairlead_cli.sim.script import Ask
from fairlead_cli.sim.seal import opened

Content: TypeAlias = dict[str, Any]

# Histories from elsewhere say this where a signature belongs.
_UNSIGNED = "skip_thought_signature_validator"
_ROLES = frozenset({"user", "model", "function", None})
_PARTS = frozenset(
    {
        *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
        *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
    }
)


def complaint(body: object) -> str | None:
    if not isinstance(body, dict):
        return "Invalid JSON payload received."
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return "* GenerateContentRequest.contents: contents is not specified\n"
    for at, content in enumerate(contents):
        if told := _shape(at, content):
            return told
    if contents[-1].get("role") == "model" and not _held(contents[-1], "functionCall"):
        return "Please ensure that multiturn requests end with a user role or a function response."
    return _answers(contents) or _signatures(contents, str(body.get("model")))


def ask(body: dict[str, Any]) -> Ask:
    system = body.get("systemInstruction") or {}
    lines = [line for content in body["contents"] for line in _lines(content)]
    return heard(
        [Line("system", text_of(system.get("parts"))), *lines],
        model=body["model"],
        stream=body.get("stream") is True,
    )


def _lines(content: Content) -> list[Line]:
    parts = content["parts"]
    text = text_of([part for part in parts if not part.get("thought")])
    if content.get("role") == "model":
        return [Line("assistant", text, len(_held(content, "functionCall")))]
    answers = _held(content, "functionResponse")
    return [*(Line("tool", _answered(one)) for one in answers), Line("user", text)]


def _answered(response: Content) -> str:
    """The text of a function's response, under whichever name it came."""
    given = response.get("response")
    held = given if isinstance(given, dict) else {}
    said = next((held[name] for name in ("output", "result", "error") if name in held), held)
    return said if isinstance(said, str) else orjson.dumps(said).decode()


def _shape(at: int, content: object) -> str | None:
    if not isinstance(content, dict) or content.get("role") not in _ROLES:
        return "Please use a valid role: user, model."
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        return f"* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n"
    if not all(isinstance(part, dict) and _PARTS & part.keys() for part in parts):
        return (
            f"* GenerateContentRequest.contents[{at}].parts: required oneof field 'data' must have "
            "one initialized field\n"
        )
    return None


def _answers(contents: Sequence[Content]) -> str | None:
    """Function responses come in the turn right after their calls, as many as those."""
    for at, content in enumerate(contents):
        answers = len(_held(content, "functionResponse"))
        calls = len(_held(contents[at - 1], "functionCall")) if at else 0
        if answers and not calls:
            return (
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if answers != calls:
            return (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
    if _held(contents[-1], "functionCall"):
        return "Please ensure that function call turn is followed by a function response turn."
    return None


def _signatures(contents: Sequence[Content], model: str) -> str | None:
    """A signature comes back where it came. Gemini 3 demands it on a turn's first call."""
    users = [at for at, content in enumerate(contents) if _spoken(content)]
    current = users[-1] if users else 0
    for at, content in enumerate(contents):
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and signature != _UNSIGNED and opened(signature) != _bound(part):
                return "Corrupted thought signature."
        calls = [part for part in content["parts"] if "functionCall" in part]
        demanding = "gemini-3" in model and at > current
        if demanding and calls and not calls[0].get("thoughtSignature"):
            return "Function call is missing a thought_signature in functionCall parts."
    return None


def _bound(part: Content) -> str:
    """What a part's signature is for: a function's name, or nothing for text."""
    call = part.get("functionCall")
    return str(call.get("name")) if isinstance(call, dict) else ""


def _spoken(content: Content) -> bool:
    return content.get("role") != "model" and any("text" in part for part in content["parts"])


def _held(content: Content, name: str) -> list[Content]:
    parts = content["parts"]
    return [part[name] for part in parts if isinstance(part.get(name), dict)]
