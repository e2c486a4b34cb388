"""webfetch: reads one page from the web."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import TextContent
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.people.permission import Need
from fairlead_tools.files.path import approval_patterns
from fairlead_tools.registry.tool import CallContext, CallFailed, Result, Tool
from fairlead_tools.web.converter_process import convert_page
from fairlead_tools.web.fetch import ACCEPT, WebPage, fetch, parse_target

Format: TypeAlias = Literal["markdown", "text", "html"]

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
TIMEOUT_S: Final = 30
TIMEOUT_S_MAX: Final = 120
MARGIN_S: Final = 10.0
DESCRIPTION: Final = """\
Reads one page from the web and returns it as markdown, plain text or HTML.

- The URL must begin with http:// or https:// and is fetched as it is.
- Redirects are followed while scheme, host and port stay the same. Any other redirect is reported \
instead: fetch the new URL if you want it.
- Pages of more than 5 MiB, images and other files that are not text are refused.
- It only reads and changes nothing."""


class WebfetchInput(BaseModel):
    """Which page to read, and in which format."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(description="the URL of the page")
    format: Format = Field(default="markdown", description="markdown, text or html")
    timeout: float = Field(
        default=TIMEOUT_S, gt=0, le=TIMEOUT_S_MAX, description="how long it may take, in seconds"
    )


class WebfetchOutput(BaseModel):
    """Where the page was. Its text is only in the content that the model sees."""

    model_config = ConfigDict(populate_by_name=True)

    url: str
    content_type: str = Field(alias="contentType")
    format: Format


Fetch = Callable[[str, str], Awaitable[WebPage]]
"""Fetches a URL with an `Accept` header."""


def tool(settings: ToolsConfig) -> Tool:
    """The tool, as far as the configuration lets it reach."""
    return tool_with(partial(fetch, private=settings.web_private))


def tool_with(fetch_page: Fetch) -> Tool:
    """The tool over any way to fetch a page."""
    return Tool(
        name="webfetch",
        description=DESCRIPTION,
        input=WebfetchInput,
        output=WebfetchOutput,
        execute=partial(execute, fetch_page),
        needs=needs,
        retry="pure",
        timeout_s=TIMEOUT_S_MAX + MARGIN_S,
    )


async def needs(request: WebfetchInput, _context: CallContext) -> tuple[Need, ...]:
    """Permission for exactly this URL. An approval for always covers the whole host.

    A URL in an unusual spelling is judged in its usual form too, so that it passes by no rule.
    """
    target = parse_target(request.url)
    always = f"{target.scheme}://{target.authority}/*"
    metadata = {"url": request.url, "format": request.format, "timeout": request.timeout}
    resources = tuple(dict.fromkeys((request.url, target.canonical)))
    return (Need("webfetch", resources, approval_patterns(always), metadata),)


async def execute(fetch_page: Fetch, request: WebfetchInput, _context: CallContext) -> Result:
    """Fetch and convert a page within the requested time. Raises CallFailed."""
    try:
        async with asyncio.timeout(request.timeout):
            page = await fetch_page(request.url, ACCEPT[request.format])
            text = decode(page)
            if request.format != "html" and page.mime in HTML:
                text = await convert_page(text, request.format)
    except TimeoutError as error:
        raise CallFailed(f"{request.url} took longer than {request.timeout:g} s") from error
    output = WebfetchOutput(url=page.url, content_type=page.mime, format=request.format)
    return Result(output, content=(TextContent(text=text),))


def decode(page: WebPage) -> str:
    """The body as text. Bytes that are no character become replacement characters."""
    try:
        return page.body.decode(page.charset or "utf-8", errors="replace")
    except LookupError:
        return page.body.decode("utf-8", errors="replace")
