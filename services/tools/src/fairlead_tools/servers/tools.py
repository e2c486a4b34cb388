"""Converts what a tool server lists into tools, and its answers into results."""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final, TypeAlias

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_types import Tool as McpTool

from fairlead_schema.tools import content as ours
from fairlead_schema.tools.content import RetryClass, ToolContent
from fairlead_session.people.permission import Need
from fairlead_session.people.wildcard import has_wildcard
from fairlead_tools.registry.json_schema import Document, document_model, input_model
from fairlead_tools.registry.registry import check_tool
from fairlead_tools.registry.tool import CallContext, CallFailed, InvalidTool, Result, Tool
from fairlead_tools.servers.limits import DESCRIPTION_LENGTH_MAX

log = logging.getLogger(__name__)

NAME_LENGTH_MAX: Final = 64
MARGIN_S: Final = 10.0
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")

Call: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[CallToolResult]]
"""Calls a tool by its name on the server. Raises CallFailed."""

Hide: TypeAlias = Callable[[str], str]
HideInResult: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the tools of one server share."""

    name: str
    call: Call
    timeout_s: float
    trusts_hints: bool = False
    """Whether the server's word counts that a tool may run again."""
    hide: Hide = str
    """Removes the server's secrets from a message."""
    hide_in_result: HideInResult = copy
    """Removes the server's credentials from a JSON value."""

    @property
    def action(self) -> str:
        """The action of permission rules about this server. The resource is the tool's name."""
        return f"mcp:{self.name}"


def convert_tools(server: ServerInfo, mcp_tools: Iterable[McpTool]) -> tuple[Tool, ...]:
    """The tools of a server, sorted by name. An invalid tool or a repeated name is left out."""
    tools: dict[str, Tool] = {}
    for mcp_tool in sorted(mcp_tools, key=lambda tool: tool.name):
        extra = {"server": server.name, "tool": mcp_tool.name}
        try:
            tool = check_tool(_tool(server, mcp_tool))
        except InvalidTool as error:
            log.warning(
                "tool of a server is invalid: models do not get it",
                extra={**extra, "reason": str(error)},
            )
            continue
        if tool.name in tools:
            log.warning("tool of a server left out: its name is taken", extra=extra)
            continue
        tools[tool.name] = tool
    return tuple(tools.values())


def tool_name(server: str, name: str) -> str:
    """A name that providers accept."""
    return _UNFIT.sub("_", f"{server}_{name}")[:NAME_LENGTH_MAX]


def retry_class(mcp_tool: McpTool, *, trusts_hints: bool) -> RetryClass:
    """Whether the tool may run again, by the hints of a trusted server; else `once`."""
    hints = mcp_tool.annotations if trusts_hints else None
    if hints is not None and hints.read_only_hint:
        return "pure"
    return "idempotent" if hints is not None and hints.idempotent_hint else "once"


def convert_result(answer: CallToolResult) -> Result:
    """The result of an answer. Raises CallFailed with the server's message."""
    content = tuple(item for block in answer.content for item in _content(block))
    if answer.is_error:
        message = "\n".join(item.text for item in content if isinstance(item, ours.TextContent))
        raise CallFailed(message or "The tool failed and gave no reason")
    structured = answer.structured_content
    return Result({} if structured is None else structured, content=content)


def _tool(server: ServerInfo, mcp_tool: McpTool) -> Tool:
    schema = mcp_tool.output_schema
    retry = retry_class(mcp_tool, trusts_hints=server.trusts_hints)
    identity = [server.name, mcp_tool.name, retry, schema]
    return Tool(
        name=tool_name(server.name, mcp_tool.name),
        description=(mcp_tool.description or mcp_tool.title or mcp_tool.name)[
            :DESCRIPTION_LENGTH_MAX
        ],
        input=input_model(mcp_tool.input_schema),
        output=Document if schema is None else document_model(schema),
        execute=partial(call_server, server, mcp_tool.name),
        needs=partial(_needs, _need(server, mcp_tool.name)),
        action=server.action,
        retry=retry,
        timeout_s=server.timeout_s + MARGIN_S,
        version=sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
    )


async def call_server(
    server: ServerInfo, name: str, request: Document, _context: CallContext
) -> Result:
    """Send one call to the server. No result and no failure has a credential of the server.

    Raises CallFailed.
    """
    try:
        result = convert_result(await server.call(name, request.root))
    except CallFailed as error:
        raise type(error)(server.hide(str(error))) from None
    content = tuple(_without_secrets(server, item) for item in result.content or ())
    return replace(result, output=server.hide_in_result(result.output), content=content)


def _without_secrets(server: ServerInfo, item: ToolContent) -> ToolContent:
    if not isinstance(item, ours.TextContent):
        return item
    return item.model_copy(update={"text": server.hide_in_result(item.text)})


def _need(server: ServerInfo, name: str) -> Need:
    """The permission for one tool. No approval is saved for a name that is a pattern."""
    return Need(server.action, (name,), save=() if has_wildcard(name) else (name,))


async def _needs(need: Need, _request: Document, _context: CallContext) -> tuple[Need, ...]:
    return (need,)


def _content(block: ContentBlock) -> tuple[ToolContent, ...]:
    match block:
        case TextContent():
            return (ours.TextContent(text=block.text),)
        case ImageContent() | AudioContent():
            return (_file(block.data, block.mime_type),)
        case EmbeddedResource(resource=TextResourceContents() as text):
            return (ours.TextContent(text=text.text),)
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            return (_file(blob.blob, blob.mime_type, str(blob.uri)),)
        case ResourceLink():
            return (ours.TextContent(text=f"{block.name}: {block.uri}"),)
        case _:
            return ()


def _file(data: str, mime: str | None, name: str | None = None) -> ours.FileContent:
    kind = mime or "application/octet-stream"
    return ours.FileContent(uri=f"data:{kind};base64,{data}", mime=kind, name=name)
