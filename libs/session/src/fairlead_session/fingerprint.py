"""A short name for a resolved prompt, so that an exact retry is told from a reused id."""

from hashlib import sha256

from fairlead_schema.prompt import Prompt


def fingerprint(prompt: Prompt) -> str:
    """Equal for equal prompts; timestamps and delivery are no part of it."""
    canonical = prompt.model_dump_json(by_alias=True, exclude_none=True)
    return sha256(canonical.encode()).hexdigest()[:32]
