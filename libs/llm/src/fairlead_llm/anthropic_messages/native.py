"""What a canonical part remembers of the block it came from, and how that block is told again.

Thinking, citations and blocks we do not know have no canonical form of their own: each is reasoning
whose metadata holds what must go back unchanged, in its place. A block without text that a reader
could see is reasoning without text.
"""

from typing import Any, TypeAlias

from fairlead_schema.provider.events import ProviderEvent, ReasoningEnd, ReasoningStart

Block: TypeAlias = dict[str, Any]
Metadata: TypeAlias = dict[str, Any]

_NAME = "anthropic"
_RESULT = "tool_result"


def noted(**fields: object) -> Metadata:
    """Metadata that only this protocol reads."""
    return {_NAME: fields}


def of(metadata: Metadata | None) -> Metadata | None:
    """What this protocol noted, if the part came from it."""
    held = (metadata or {}).get(_NAME)
    return held if isinstance(held, dict) else None


def silent(id_: str, **fields: object) -> tuple[ProviderEvent, ...]:
    """A block that says nothing to a reader but must be told again."""
    return ReasoningStart(id_), ReasoningEnd(id_, noted(**fields))


def is_hosted(block: Block) -> bool:
    """Whether a block belongs to a tool that the provider runs: a call or a result."""
    kind = str(block.get("type"))
    return is_result(kind) or (kind.endswith("tool_use") and kind != "tool_use")


def is_result(kind: object) -> bool:
    """Whether a block type is the result of a hosted tool."""
    return str(kind).endswith(f"_{_RESULT}")
