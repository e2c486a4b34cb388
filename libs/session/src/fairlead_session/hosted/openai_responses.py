"""Hosted content of the Responses API, by the type of its item."""

from typing import Any, Final

from fairlead_session.hosted.provider_secrets import remove_provider_secrets
from fairlead_session.hosted.rule import (
    HostedRule,
    Table,
    new_table,
    replace_items,
    replace_texts,
)


def _shorten_found(item: dict[str, Any], note: str) -> dict[str, Any]:
    return item | {"results": replace_items(item.get("results"), note, "text")}


def _shorten_logs(item: dict[str, Any], note: str) -> dict[str, Any]:
    """An image that has its bytes in its address becomes a log, because a note is no address."""
    outputs = [
        {"type": "logs", "logs": note} if _is_inline_image(output) else output
        for output in item.get("outputs") or ()
    ]
    return item | {"outputs": replace_items(outputs, note, "logs")}


def _shorten_output(item: dict[str, Any], note: str) -> object:
    return replace_texts(item, note, "output")


def _shorten_shell(item: dict[str, Any], note: str) -> dict[str, Any]:
    return item | {"output": replace_items(item.get("output"), note, "stdout", "stderr")}


def _lower_image(item: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """The facts about an image. Its bytes are no text that another model can read."""
    image = item.get("result")
    size = len(image) if isinstance(image, str) else 0
    left_out = f"[{size} characters of base64 were left out]"
    return remove_provider_secrets({**item, "result": left_out})


def _lower_logs(item: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Logs are text. An image that has its bytes in its address is only named."""
    outputs = [
        output | {"url": "[an image]"} if _is_inline_image(output) else output
        for output in item.get("outputs") or ()
    ]
    return remove_provider_secrets({**item, "outputs": outputs})


def _is_inline_image(output: object) -> bool:
    return isinstance(output, dict) and str(output.get("url")).startswith("data:")


TABLE: Final[Table] = new_table(
    HostedRule("web_search_call", "call"),
    HostedRule("file_search_call", "call", shorten=_shorten_found),
    HostedRule("code_interpreter_call", "call", lower=_lower_logs, shorten=_shorten_logs),
    HostedRule("mcp_call", "call", shorten=_shorten_output),
    HostedRule("mcp_list_tools", "call", to_others="note"),
    HostedRule("mcp_approval_request", "call", to_others="note"),
    HostedRule("image_generation_call", "call", lower=_lower_image, ordinary_when_old=True),
    HostedRule("shell_call", "call", to_others="note"),
    HostedRule("shell_call_output", "call", shorten=_shorten_shell),
    HostedRule("tool_search_call", "call", to_others="note"),
    HostedRule("tool_search_output", "call", to_others="note"),
    HostedRule("compaction", "call", to_others="note"),
    HostedRule("reasoning", "reasoning", to_others="dropped"),
    HostedRule("annotations", "text", to_others="dropped"),
)
