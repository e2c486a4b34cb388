"""Removes what only the provider of a hosted result can read, before another model gets the result."""

from typing import Any, Final

from fairlead_schema.json_depth import DEPTH_MAX

# Providers name such fields encrypted_content, encrypted_index, signature, thoughtSignature and so on.
SECRET_WORDS: Final = ("encrypted", "signature")


def remove_provider_secrets(value: Any, *, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """A JSON value without encrypted and signed fields, at every depth. All else stays as it is."""
    if depth > DEPTH_MAX:
        return None
    if isinstance(value, dict):
        return {
            key: remove_provider_secrets(item, depth=depth + 1)
            for key, item in value.items()
            if not any(word in str(key).lower() for word in SECRET_WORDS)
        }
    if isinstance(value, list | tuple):
        return [remove_provider_secrets(item, depth=depth + 1) for item in value]
    return value
