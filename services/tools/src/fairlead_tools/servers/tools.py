"""What a tool server lists becomes tools of ours, and what it answers becomes their results."""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
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
from mcp_types import Tool as Listed

from fairlead_schema.tools import content as ours
from fairlead_schema.tools.content import RetryClass, ToolContent
from fairlead_tools.registry.json_schema import Document, document_model, input_model
from fairlead_tools.registry.registry import InvalidTool, check_tool
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool
from fairlead_tools.servers.limits import DESCRIPTION_LENGTH_MAX

log = logging.getLogger(__name__)

NAME_LENGTH_MAX: Final = 64
MARGIN_S: Final = 10.0
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")

Call: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[CallToolResult]]
"""Calls a tool by the server's own name for it. Raises CallFailed."""


def convert_tools(
    server: str, listed: Iterable[Listed], call: Call, timeout_s: float
) -> tuple[Tool, ...]:
    """The tools of a server, in the order of their names; what cannot be offered is left out."""
    made: dict[str, Tool] = {}
    for one in sorted(listed, key=lambda one: one.name):
        extra = {"server": server, "tool": one.name}
        try:
            tool = check_tool(_tool(server, one, call, timeout_s))
        except InvalidTool as error:
            log.warning("tool of a server refused", extra={**extra, "reason": str(error)})
            continue
        if tool.name in made:
            log.warning("tool of a server refused", extra={**extra, "reason": "its name is taken"})
            continue
        made[tool.name] = tool
    return tuple(made.values())


def tool_name(server: str, listed: str) -> str:
    """A name that providers take."""
    return _UNFIT.sub("_", f"{server}_{listed}")[:NAME_LENGTH_MAX]


def retry_class(listed: Listed) -> RetryClass:
    """What the server says of running it again; saying nothing, it runs once."""
    hints = listed.annotations
    if hints is not None and hints.read_only_hint:
        return "pure"
    return "idempotent" if hints is not None and hints.idempotent_hint else "once"


def convert_result(answer: CallToolResult) -> Result:
    """An answer as a result. Raises CallFailed with the server's words."""
    content = tuple(item for block in answer.content for item in _content(block))
    if answer.is_error:
        words = "\n".join(item.text for item in content if isinstance(item, ours.TextContent))
        raise CallFailed(words or "The tool failed and did not say why")
    structured = answer.structured_content
    return Result({} if structured is None else structured, content=content)


def _tool(server: str, listed: Listed, call: Call, timeout_s: float) -> Tool:
    schema = listed.output_schema
    identity = [server, listed.name, retry_class(listed), schema]
    return Tool(
        name=tool_name(server, listed.name),
        description=(listed.description or listed.title or listed.name)[:DESCRIPTION_LENGTH_MAX],
        input=input_model(listed.input_schema),
        output=Document if schema is None else document_model(schema),
        execute=partial(call_server, call, listed.name),
        retry=retry_class(listed),
        timeout_s=timeout_s + MARGIN_S,
        version=sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
    )


async def call_server(call: Call, called: str, asked: Document, _context: CallContext) -> Result:
    """One call to the server."""
    return convert_result(await call(called, asked.root))


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


def _file(data: str, mime: str | None, name_: str | None = None) -> ours.FileContent:
    kind = mime or "application/octet-stream"
    return ours.FileContent(uri=f"data:{kind};base64,{data}", mime=kind, name=name_)
