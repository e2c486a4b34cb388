"""Metadata of this protocol: fields of a Gemini part that must go back unchanged.

A signature must go back on its own part. Text has no metadata, so reasoning without text follows a
signed text and holds its signature. A part without a canonical form becomes such reasoning too.
"""

from typing import Any, TypeAlias

from fairlead_schema.provider.events import ProviderEvent, ReasoningEnd, ReasoningStart

Part: TypeAlias = dict[str, Any]
Metadata: TypeAlias = dict[str, Any]

SIGNATURE = "thoughtSignature"
TEXT_SIGNATURE = "textSignature"
# Calls and results of tools that the provider runs itself, by the name of their part.
HOSTED_CALLS = ("executableCode", "toolCall")
HOSTED_RESULTS = ("codeExecutionResult", "toolResponse")

_NAME = "google"


def native_metadata(**fields: object) -> Metadata | None:
    """Metadata that only this protocol reads, or None without any field."""
    present = {name: value for name, value in fields.items() if value is not None}
    return {_NAME: present} if present else None


def read_metadata(metadata: Metadata | None) -> Metadata:
    """The fields of this protocol."""
    fields = (metadata or {}).get(_NAME)
    return fields if isinstance(fields, dict) else {}


def add_signature(part: Part, metadata: Metadata | None) -> Part:
    """The part with its original signature."""
    signature = read_metadata(metadata).get(SIGNATURE)
    return part if signature is None else part | {SIGNATURE: signature}


def hidden_reasoning(id_: str, **fields: object) -> tuple[ProviderEvent, ...]:
    """The events of a part without visible text that must go back to the API."""
    return ReasoningStart(id_), ReasoningEnd(id_, native_metadata(**fields))
