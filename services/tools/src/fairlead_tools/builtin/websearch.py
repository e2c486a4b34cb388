"""`websearch`: queries a configured search service over MCP."""

import asyncio
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairlead_schema.tools.content import Json, TextContent, ToolContent
from fairlead_service.config.sections import ToolsConfig
from fairlead_service.config.tool_servers import SearchServiceConfig
from fairlead_session.people.permission import Need
from fairlead_tools.registry.tool import CallContext, CallFailed, Tool
from fairlead_tools.web.fetch import AGENT, open_request, parse_target, read_body

TIMEOUT_S: Final = 25.0
REPLY_BYTES_MAX: Final = 256 * 1024
NOTHING: Final = "No search results found. Please try a different query."
HIDDEN: Final = "[hidden]"
DESCRIPTION: Final = """\
Searches the web and returns passages of the pages that were found.

- Use it for what may have changed since you were trained, and for what you do not know.
- To read one page whose address is known, use webfetch."""


class WebsearchInput(BaseModel):
    """The query and its options."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    query: str = Field(min_length=1, max_length=4000, description="what to search for")
    numResults: int = Field(default=8, ge=1, le=20, description="how many results")  # noqa: N815
    livecrawl: Literal["fallback", "preferred"] | None = Field(
        default=None, description="whether pages are fetched again"
    )
    type: Literal["auto", "fast", "deep"] | None = Field(
        default=None, description="how thorough the search is"
    )
    contextMaxCharacters: int | None = Field(  # noqa: N815
        default=None, ge=1, le=50_000, description="how many characters of passages in all"
    )


class WebsearchOutput(BaseModel):
    """The passages and the service that found them."""

    provider: str
    output: str


def tools(settings: ToolsConfig) -> tuple[Tool, ...]:
    """The tool, if a search service is configured."""
    if not settings.websearch:
        return ()
    return (
        Tool(
            name="websearch",
            description=DESCRIPTION,
            input=WebsearchInput,
            output=WebsearchOutput,
            execute=partial(execute, settings),
            project=project,
            needs=needs,
            retry="pure",
            timeout_s=TIMEOUT_S + 10.0,
        ),
    )


async def needs(request: WebsearchInput, _context: CallContext) -> tuple[Need, ...]:
    metadata = request.model_dump(exclude_none=True)
    return (Need("websearch", (request.query,), save=("*",), metadata=metadata),)


def provider(settings: ToolsConfig, session_id: str) -> str:
    """The service to query: the configured one, else always the same one for a session."""
    if settings.websearch_provider is not None:
        return settings.websearch_provider
    names = sorted(settings.websearch)
    return names[zlib.crc32(session_id.encode()) % len(names)]


async def execute(
    settings: ToolsConfig, request: WebsearchInput, context: CallContext
) -> WebsearchOutput:
    """Search once. Raises CallFailed with a message that holds no key."""
    name = provider(settings, context.at.session_id)
    service = settings.websearch[name]
    key = os.environ.get(service.api_key_env or "", "")
    if service.api_key_env is not None and not key:
        raise CallFailed(f"The search service {name} has no key: {service.api_key_env} is not set")
    try:
        async with asyncio.timeout(TIMEOUT_S):
            passages = await _search(service, key, request)
    except TimeoutError as error:
        raise CallFailed(f"The search took longer than {TIMEOUT_S:g} s") from error
    except CallFailed as error:
        raise CallFailed(_without(key, str(error))) from None
    return WebsearchOutput(provider=name, output=_without(key, passages) or NOTHING)


async def _search(service: SearchServiceConfig, key: str, request: WebsearchInput) -> str:
    # The operator configured the address, so a private one is allowed.
    target = parse_target(service.url)
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "user-agent": AGENT,
    }
    if key:
        bearer = service.api_key_header.lower() == "authorization"
        headers[service.api_key_header.lower()] = f"Bearer {key}" if bearer else key
    call = {"name": service.tool, "arguments": request.model_dump(exclude_none=True)}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    content = json.dumps(message).encode()
    async with open_request("POST", target, headers, private=True, content=content) as response:
        if not response.is_success:
            raise CallFailed(f"The search service answered with status {response.status_code}")
        return parse_results((await read_body(response, REPLY_BYTES_MAX)).decode(errors="replace"))


def parse_results(reply: str) -> str:
    """The text of a reply, which is JSON or an event stream; empty without results."""
    for message in _messages(reply):
        error = message.get("error")
        if isinstance(error, Mapping):
            raise CallFailed(f"The search failed: {error.get('message', 'no reason given')}")
        result = message.get("result")
        if isinstance(result, Mapping):
            text = "\n\n".join(_texts(result.get("content")))
            if result.get("isError"):
                raise CallFailed(f"The search failed: {text or 'no reason given'}")
            return text
    raise CallFailed("The search service sent an unreadable answer")


def project(output: Json) -> tuple[ToolContent, ...]:
    return (TextContent(text=output["output"]),)


def _messages(reply: str) -> Iterator[dict[str, Any]]:
    lines = reply.splitlines()
    events = [line.removeprefix("data:") for line in lines if line.startswith("data:")]
    for text in events or [reply]:
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            yield message


def _texts(content: object) -> Iterator[str]:
    for item in content if isinstance(content, list) else ():
        text = item.get("text") if isinstance(item, dict) else None
        if isinstance(text, str) and text.strip():
            yield text


def _without(key: str, text: str) -> str:
    return text.replace(key, HIDDEN) if key else text
