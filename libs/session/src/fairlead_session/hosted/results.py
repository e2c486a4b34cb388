"""Hosted results in requests: shortened when old, and lowered for another model."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import to_json

from fairlead_schema.message import ToolBlock
from fairlead_schema.tools.content import CallExecutor, CompletedCall
from fairlead_session.hosted.provider_secrets import SECRET_WORDS, remove_provider_secrets
from fairlead_session.hosted.rule import HostedRule
from fairlead_session.hosted.tables import find_hidden_rule, find_rule


def is_hosted(block: ToolBlock) -> bool:
    """Whether the provider ran the call itself."""
    return block.provider is not None and block.provider.executed


def result_metadata(block: ToolBlock) -> dict[str, Any] | None:
    """What the protocol recorded about the result, else about the call (O-12)."""
    if block.provider is None:
        return None
    return block.provider.result_metadata or block.provider.metadata


def shorten_result(block: ToolBlock, over_bytes: int, note: Callable[[int], str]) -> ToolBlock:
    """The block with a large result shortened; the same block if its result stays whole.

    A signed result stays whole: its provider may check the signature.
    """
    state, metadata = block.state, result_metadata(block)
    if not isinstance(state, CompletedCall) or state.result is None or not metadata:
        return block
    size = len(to_json(state.result))
    if size <= over_bytes or _is_signed(metadata):
        return block
    rule = find_rule(metadata, state.result)
    if rule.ordinary_when_old:
        return _with_result(block, state, note(size), CallExecutor(executed=True))
    if rule.shorten is None:
        return block
    shorter = rule.shorten(state.result, note(size))
    if len(to_json(shorter)) >= size:
        return block
    return _with_result(block, state, shorter, block.provider)


def lowered_result(block: ToolBlock, result: object) -> object:
    """A hosted result as every model can read it: a JSON value, or a text for a note."""
    metadata = result_metadata(block)
    if not metadata:
        return remove_provider_secrets(result)
    return _lower(find_rule(metadata, result), result)


def lowered_hidden_text(metadata: Mapping[str, Any] | None) -> str:
    """The text that tells another model about a block without visible text. Usually empty."""
    found = find_hidden_rule(metadata or {})
    if found is None or found[0].to_others == "dropped":
        return ""
    rule, value = found
    lowered = _lower(rule, value)
    if rule.to_others == "note":
        return str(lowered)
    text = lowered if isinstance(lowered, str) else to_json(lowered).decode()
    return f"[{rule.type}: {text}]"


def _lower(rule: HostedRule, value: object) -> object:
    if rule.to_others == "lowered":
        return rule.lower(value)
    return f"[A result of the type {rule.type} was left out here: only its own model can read it.]"


def _with_result(
    block: ToolBlock, state: CompletedCall, result: object, provider: CallExecutor | None
) -> ToolBlock:
    update = {"result": result, "structured": {}, "content": ()}
    return block.model_copy(update={"state": state.model_copy(update=update), "provider": provider})


def _is_signed(metadata: Mapping[str, Any]) -> bool:
    fields = (key for value in metadata.values() if isinstance(value, dict) for key in value)
    return any(word in str(key).lower() for key in fields for word in SECRET_WORDS)
