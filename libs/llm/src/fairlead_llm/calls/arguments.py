"""Tool arguments: raw text that should hold one JSON object."""

from typing import Any

from fairlead_llm.json_reader import load_json


def parse_arguments(text: str) -> tuple[Any, str | None]:
    """The value, and why it is unusable. Empty text means no arguments.

    Text that is not JSON comes back unchanged, so that the model can see its own mistake.
    """
    if not text.strip():
        return {}, None
    try:
        value = load_json(text)
    except ValueError as error:
        return text, f"The arguments are not JSON: {error}"
    return value, fault(value)


def fault(value: object) -> str | None:
    """Why a value cannot be a tool's arguments."""
    return None if isinstance(value, dict) else "The arguments are not a JSON object"


def as_object(value: object) -> dict[str, Any]:
    """Arguments for a wire format that takes only objects. Any other value is wrapped in one."""
    return value if isinstance(value, dict) else {"value": value}
