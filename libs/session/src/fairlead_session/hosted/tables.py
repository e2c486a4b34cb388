"""The tables of all protocols, and the rule for one piece of hosted content."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from fairlead_session.hosted import anthropic_messages, gemini, openai_chat, openai_responses
from fairlead_session.hosted.rule import HostedRule, Table, unknown_rule

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "anthropic-messages": anthropic_messages.TABLE,
        "gemini": gemini.TABLE,
        "openai-chat": openai_chat.TABLE,
        "openai-responses": openai_responses.TABLE,
    }
)
# The fields of a part that are not its type. A part with nothing else is a signature alone.
_PART_FIELDS: Final = frozenset({"text", "thought", "thoughtSignature"})


def find_rule(metadata: Mapping[str, Any], value: object) -> HostedRule:
    """The rule for a hosted result, by the metadata that its protocol recorded.

    The Messages API and Gemini have the type in their metadata, the Responses API in the item.
    """
    match metadata, value:
        case {"anthropic": {"type": str(type_)}}, _:
            table = anthropic_messages.TABLE
        case {"google": {"kind": str(type_)}}, _:
            table = gemini.TABLE
        case {"item_id": _}, {"type": str(type_)}:
            table = openai_responses.TABLE
        case _:
            return unknown_rule("unknown")
    return table.get(type_) or unknown_rule(type_)


def find_hidden_rule(metadata: Mapping[str, Any]) -> tuple[HostedRule, object] | None:
    """The rule and the value of a block without visible text; None for metadata of reasoning or text."""
    match metadata:
        case {"anthropic": {"block": {"type": str(type_)} as block}}:
            value = block.get("content")
            return anthropic_messages.TABLE.get(type_) or unknown_rule(type_), value
        case {"google": {"part": dict() as part}}:
            for name in sorted(part.keys() - _PART_FIELDS):
                return gemini.TABLE.get(name) or unknown_rule(name), part[name]
            return None
        case _:
            return None
