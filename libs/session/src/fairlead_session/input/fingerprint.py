"""Fingerprints: short hashes that recognise equal values without keeping the values."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from fairlead_schema.attachments.reference import attachment_uri, id_of_content
from fairlead_schema.prompt import Prompt, PromptFile
from fairlead_session.media.data_uri import parse_data_uri


def fingerprint(prompt: Prompt) -> str:
    """Recognises an exact retry. The time and the delivery are not part of the hash.

    The same attachment has the same hash inline and stored, before and after its content was taken.
    An expanded prompt has the hash of what was typed, because files and templates change.
    """
    if prompt.source is not None:
        return prompt.source.fingerprint
    if prompt.files:
        prompt = prompt.model_copy(update={"files": tuple(map(_identify, prompt.files))})
    if prompt.output_schema is None:
        canonical = to_json(prompt, by_alias=True, exclude_none=True)
    else:
        # The order of the keys of a schema does not matter.
        canonical = json.dumps(prompt.wire(), sort_keys=True).encode()
    return sha256(canonical).hexdigest()[:32]


def _identify(file: PromptFile) -> PromptFile:
    parsed = parse_data_uri(file.uri)
    uri = file.uri if parsed is None else attachment_uri(id_of_content(parsed.content))
    return file.model_copy(update={"uri": uri, "content": None})


def shell_fingerprint(command: str) -> str:
    """Recognises the exact retry of a person's own command. No prompt has the same hash."""
    return sha256(b"shell " + command.encode()).hexdigest()[:32]


def call_fingerprint(tool: str, arguments: Mapping[str, Any]) -> str:
    """Recognises a repeated call. The order of the arguments does not matter."""
    canonical = to_json({key: arguments[key] for key in sorted(arguments)})
    return sha256(tool.encode() + b" " + canonical).hexdigest()[:32]
