"""Fingerprints: short hashes that recognise equal values without keeping the values."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from fairlead_schema.prompt import Prompt


def fingerprint(prompt: Prompt) -> str:
    """Recognises an exact retry. The time and the delivery are not part of the hash."""
    canonical = to_json(prompt, by_alias=True, exclude_none=True)
    return sha256(canonical).hexdigest()[:32]


def call_fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """Recognises a repeated call. The order of the arguments does not matter."""
    canonical = to_json({key: arguments[key] for key in sorted(arguments)})
    return sha256(tool.encode() + b" " + canonical).hexdigest()[:32]
