"""Short names for values, so that equal ones are recognised without keeping them."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from fairlead_schema.prompt import Prompt


def fingerprint(prompt: Prompt) -> str:
    """Tells an exact retry from a reused id; timestamps and delivery are no part of it."""
    canonical = prompt.model_dump_json(by_alias=True, exclude_none=True)
    return sha256(canonical.encode()).hexdigest()[:32]


def call_fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """Tells the same call made again; the order of its arguments is no part of it."""
    canonical = to_json({key: arguments[key] for key in sorted(arguments)})
    return sha256(tool.encode() + b" " + canonical).hexdigest()[:32]
