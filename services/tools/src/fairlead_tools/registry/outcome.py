"""Outcomes of tools: returned values checked and encoded, and failures in words for the model."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from fairlead_schema.json_depth import DEPTH_MAX, is_too_deep
from fairlead_schema.tools.content import Json, TextContent
from fairlead_session.calls.lifecycle import Failed, Outcome, Succeeded
from fairlead_tools.registry.call_input import describe_errors, ignored_note
from fairlead_tools.registry.tool import Result, Tool

MESSAGE_LENGTH_MAX: Final = 1_000_000


def encode_output(tool: Tool, returned: object, *, ignored: Sequence[str] = ()) -> Outcome:
    """The value that a tool returned, checked against its output model, with content for the model.

    The content begins with a note about the arguments that were ignored, if there were any.
    """
    result = returned if isinstance(returned, Result) else Result(returned)
    # A model instance may have been built without validation. Its dump is validated like any value.
    raw = result.output
    if isinstance(raw, BaseModel):
        raw = raw.model_dump(by_alias=True, warnings=False)
    try:
        output = tool.output.model_validate(raw)
    except ValidationError as error:
        return tool_crash(f"Invalid tool output: {describe_errors(error)}")
    value: Json = output.model_dump(mode="json", by_alias=True)
    if is_too_deep(value):
        return tool_crash(f"Invalid tool output: nested deeper than {DEPTH_MAX} levels")
    content = tool.project(value) if result.content is None else result.content
    structured = value if isinstance(value, dict) else {} if content else {"output": value}
    if ignored:
        # Without content the model sees the structured value, so that has to stand beside the note.
        shown = content or (TextContent(text=to_json(structured).decode()),)
        content = (TextContent(text=ignored_note(ignored)), *shown)
    return Succeeded(structured=structured, content=content, facts=result.facts)


def tool_crash(reason: str, *, unseen: bool = False) -> Failed:
    """A failure that the tool did not declare."""
    return tool_failure(f"Tool execution failed: {reason}", unseen=unseen)


def tool_failure(message: str, *, unseen: bool = False) -> Failed:
    """A failure. Text that no log can hold is escaped, and a huge message is cut.

    `unseen` says that nobody saw how the run ended.
    """
    text = message[:MESSAGE_LENGTH_MAX].encode(errors="backslashreplace").decode()
    return Failed(text, unseen=unseen)


def error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__
