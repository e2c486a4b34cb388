"""Fields of an input: an absent value is left out, because inputs refuse null."""

from typing import Any


def present(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of any model
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
