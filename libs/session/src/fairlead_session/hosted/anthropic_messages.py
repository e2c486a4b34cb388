"""Hosted content of the Messages API, by the type of its block."""

from typing import Any, Final

from fairlead_session.hosted.provider_secrets import remove_provider_secrets
from fairlead_session.hosted.rule import (
    HostedRule,
    Table,
    new_table,
    replace_items,
    replace_texts,
)


def _shorten_execution(content: object, note: str) -> object:
    """The encrypted form of an execution stays whole, because only the provider can read it."""
    if isinstance(content, dict) and "encrypted_stdout" in content:
        return content
    return replace_texts(content, note, "stdout", "stderr")


def _shorten_view(content: object, note: str) -> object:
    return replace_texts(content, note, "content")


def _shorten_texts(content: object, note: str) -> object:
    if isinstance(content, str):
        return note if len(content) > len(note) else content
    return replace_items(content, note, "text")


def _shorten_page(content: Any, note: str) -> object:  # noqa: ANN401 - any JSON value
    """A page with citations stays whole, because later texts name places in it."""
    match content:
        case {"content": {"citations": {"enabled": True}}}:
            return content
        case {"content": {"source": {"data": str()}} as document}:
            source = {"type": "text", "media_type": "text/plain", "data": note}
            return {**content, "content": {**document, "source": source}}
        case _:
            return content


def _lower_page(content: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A page as text. The bytes of another document are left out."""
    match content:
        case {"content": {"source": {"type": "base64", "data": str(data), **source}} as document}:
            left_out = f"[{len(data)} characters of base64 were left out]"
            whole = {**document, "source": {**source, "data": left_out}}
            return remove_provider_secrets({**content, "content": whole})
        case _:
            return remove_provider_secrets(content)


TABLE: Final[Table] = new_table(
    HostedRule("web_search_tool_result", "call"),
    HostedRule("web_fetch_tool_result", "call", lower=_lower_page, shorten=_shorten_page),
    HostedRule("code_execution_tool_result", "call", shorten=_shorten_execution),
    HostedRule("bash_code_execution_tool_result", "call", shorten=_shorten_execution),
    HostedRule("text_editor_code_execution_tool_result", "call", shorten=_shorten_view),
    HostedRule("mcp_tool_result", "call", shorten=_shorten_texts),
    HostedRule("tool_search_tool_result", "call", to_others="note"),
    HostedRule("advisor_tool_result", "call"),
    HostedRule("compaction", "block"),
    HostedRule("container_upload", "block", to_others="note"),
    HostedRule("fallback", "block", to_others="dropped"),
    HostedRule("thinking", "reasoning", to_others="dropped"),
    HostedRule("redacted_thinking", "reasoning", to_others="dropped"),
    HostedRule("citations", "text", to_others="dropped"),
)
