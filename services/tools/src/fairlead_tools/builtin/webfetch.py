"""webfetch: reads one page from the web."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import TextContent
from fairlead_service.config.configuration import ToolsConfig
from fairlead_session.people.permission import Need
from fairlead_tools.registry.tool import CallFailed, Context, Result, Tool
from fairlead_tools.web import guard
from fairlead_tools.web.fetch import ACCEPT, Page, fetch
from fairlead_tools.web.markdown import Format, readable

TIMEOUT_S: Final = 30
TIMEOUT_S_MAX: Final = 120
MARGIN_S: Final = 10.0
DESCRIPTION: Final = """\
Reads one page from the web and returns it as markdown, plain text or HTML.

- The URL must begin with http:// or https:// and is fetched as it is.
- Redirects on the same host are followed. One that leads to another host is told instead: fetch that \
URL if it is wanted.
- Pages of more than 5 MiB, images and other files that are not text are refused.
- It only reads; nothing is changed anywhere."""


class WebfetchInput(BaseModel):
    """Which page, and how to show it."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(description="the URL of the page")
    format: Format = Field(default="markdown", description="markdown, text or html")
    timeout: float = Field(
        default=TIMEOUT_S, gt=0, le=TIMEOUT_S_MAX, description="how long it may take, in seconds"
    )


class WebfetchOutput(BaseModel):
    """Where the page was. Its text is what the model sees, and is kept only once."""

    model_config = ConfigDict(populate_by_name=True)

    url: str
    content_type: str = Field(alias="contentType")
    format: Format


Read = Callable[[str, str], Awaitable[Page]]
"""Fetches a URL, saying what is accepted."""


def tool(settings: ToolsConfig) -> Tool:
    """The tool, as far as the configuration lets it reach."""
    return made(partial(fetch, private=settings.web_private))


def made(read: Read) -> Tool:
    return Tool(
        name="webfetch",
        description=DESCRIPTION,
        input=WebfetchInput,
        output=WebfetchOutput,
        execute=partial(run, read),
        needs=needed,
        retry="pure",
        timeout_s=TIMEOUT_S_MAX + MARGIN_S,
    )


async def needed(asked: WebfetchInput, _context: Context) -> tuple[Need, ...]:
    """Permission for exactly this URL; for always, it stands for the whole host."""
    wanted = guard.target(asked.url)
    always = f"{wanted.scheme}://{wanted.authority}/*"
    told = {"url": asked.url, "format": asked.format, "timeout": asked.timeout}
    return (Need("webfetch", (asked.url,), save=(always,), metadata=told),)


async def run(read: Read, asked: WebfetchInput, _context: Context) -> Result:
    """Fetch and convert within the time that was asked for. Raises CallFailed."""
    try:
        async with asyncio.timeout(asked.timeout):
            page = await read(asked.url, ACCEPT[asked.format])
            text = decoded(page)
            if page.mime in {"text/html", "application/xhtml+xml"}:
                text = await asyncio.to_thread(_converted, text, asked.format)
    except TimeoutError as error:
        raise CallFailed(f"{asked.url} took longer than {asked.timeout:g} s") from error
    found = WebfetchOutput(url=page.url, content_type=page.mime, format=asked.format)
    return Result(found, content=(TextContent(text=text),))


def decoded(page: Page) -> str:
    """A body as text; what is no character is shown as a replacement."""
    try:
        return page.body.decode(page.charset or "utf-8", errors="replace")
    except LookupError:
        return page.body.decode("utf-8", errors="replace")


def _converted(html: str, wanted: Format) -> str:
    try:
        return readable(html, wanted)
    except (ValueError, RecursionError, AssertionError) as error:
        raise CallFailed(f"The page cannot be converted: {error}") from error
