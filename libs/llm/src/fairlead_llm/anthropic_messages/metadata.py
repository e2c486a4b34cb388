"""Metadata of this protocol: fields of a block that must go back to the API unchanged.

Thinking, citations and unknown blocks have no canonical form. Each becomes a reasoning part whose
metadata holds the original fields. A block without visible text becomes reasoning without text.
"""

from typing import Any, TypeAlias

from fairlead_schema.provider.events import ProviderEvent, ReasoningEnd, ReasoningStart

Block: TypeAlias = dict[str, Any]
Metadata: TypeAlias = dict[str, Any]

# In the metadata of a hosted result: how many blocks stood between the call and this result.
BLOCKS_BETWEEN = "blocks_between"
_NAME = "anthropic"
_RESULT = "tool_result"


def native_metadata(**fields: object) -> Metadata:
    """Metadata that only this protocol reads."""
    return {_NAME: fields}


def read_metadata(metadata: Metadata | None) -> Metadata | None:
    """The fields of this protocol, or None for a part of another provider."""
    fields = (metadata or {}).get(_NAME)
    return fields if isinstance(fields, dict) else None


def hidden_reasoning(id_: str, **fields: object) -> tuple[ProviderEvent, ...]:
    """The events of a block without visible text that must go back to the API."""
    return ReasoningStart(id_), ReasoningEnd(id_, native_metadata(**fields))


def is_hosted(block: Block) -> bool:
    """Whether a block is a call or a result of a hosted tool."""
    kind = str(block.get("type"))
    return is_result(kind) or (kind.endswith("tool_use") and kind != "tool_use")


def is_result(kind: object) -> bool:
    """Whether a block type is the result of a hosted tool."""
    return str(kind).endswith(f"_{_RESULT}")
