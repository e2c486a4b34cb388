"""Tool arguments: raw text that should say one JSON object."""

from typing import Any

from fairlead_llm.json_reader import loaded


def parsed(text: str) -> tuple[Any, str | None]:
    """The value, and why it cannot be used; no text means no arguments.

    Text that is not JSON is given back as it came, so that the model can be told what it said.
    """
    if not text.strip():
        return {}, None
    try:
        value = loaded(text)
    except ValueError as error:
        return text, f"The arguments are not JSON: {error}"
    return value, fault(value)


def fault(value: object) -> str | None:
    """Why a value cannot be a tool's arguments."""
    return None if isinstance(value, dict) else "The arguments are not a JSON object"


def as_object(value: object) -> dict[str, Any]:
    """Arguments for a wire that takes only objects; anything else is wrapped as a value."""
    return value if isinstance(value, dict) else {"value": value}
