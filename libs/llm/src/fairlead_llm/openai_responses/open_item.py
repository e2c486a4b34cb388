"""An output item that is still streaming."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from fairlead_schema.provider.events import ProviderEvent

Events: TypeAlias = tuple[ProviderEvent, ...]
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenItem:
    """An item that is still streaming. A message or reasoning has one open block, its `part`."""

    type: str
    id: str
    name: str = ""
    item_id: str | None = None
    part: int = 0
    block_open: bool = False
    has_text: bool = False
    raw: bool = False
    text: str = ""
    phase: str | None = None

    def shows_part(self, part: object) -> bool:
        """Whether the item is a message whose open block is this part."""
        return self.block_open and self.part == part and self.type == "message"


def text_or_none(value: object) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None
