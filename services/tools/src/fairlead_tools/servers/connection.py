"""One tool server, kept connected: listed again when it says so, started again when it dies."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    Implementation,
    ToolListChangedNotification,
)
from mcp_types import Tool as Listed
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from fairlead_service.config.tool_servers import Credentials, ToolServerConfig
from fairlead_service.supervise import Restarts, cancel_and_wait, supervise
from fairlead_tools.registry.tool import CallFailed, Tool
from fairlead_tools.servers import http, stdio
from fairlead_tools.servers.limits import PAGES_MAX, TOOLS_MAX
from fairlead_tools.servers.tools import convert_tools

log = logging.getLogger(__name__)

PAUSE_S: Final = 0.5
PAUSE_MAX_S: Final = 60.0
JITTER: Final = 0.2
# News that come in one breath are one piece of news.
BREATH_S: Final = 0.2
HIDDEN: Final = "[hidden]"

for _chatty in ("mcp", "httpx2", "httpcore2"):
    # Below this they speak of what is sent, and that may hold what nobody should read.
    logging.getLogger(_chatty).setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The values that are never told."""

    env: dict[str, str]
    headers: dict[str, str]

    def hide(self, text: str) -> str:
        for value in sorted({*self.env.values(), *self.headers.values()}, key=len, reverse=True):
            text = text.replace(value, HIDDEN) if value else text
        return text


class ServerLost(Exception):
    """A connection to a tool server ended, or could not be made."""


class ServerConnection:
    """A server under one set of credentials."""

    def __init__(
        self,
        name: str,
        server: ToolServerConfig,
        credentials: Credentials,
        on_tools: Callable[[tuple[Tool, ...]], None],
    ) -> None:
        self._name = name
        self._server = server
        self._credentials = credentials
        self._on_tools = on_tools
        self._client: Client | None = None
        self._ending = stdio.ServerExit()
        self._changed = asyncio.Event()
        self.listed = asyncio.Event()

    async def run(self) -> None:
        """Connect for ever. The pauses between two connections grow while none of them lasts."""
        restarts = Restarts(pause_s=PAUSE_S, pause_s_max=PAUSE_MAX_S, jitter=JITTER)
        name = f"connection to tool server {self._name}"
        await supervise(name, self._connect_once, restarts=restarts)

    async def _connect_once(self) -> None:
        raise ServerLost(await self._once())

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """One call, sent once whatever happens. Raises CallFailed."""
        client = self._client
        if client is None or self._ending.event.is_set():
            raise CallFailed(f"The server {self._name} is unavailable: {tool} was not run.")
        try:
            return await client.session.call_tool(
                tool, arguments, read_timeout_seconds=self._server.timeout_s
            )
        except MCPError as error:
            if error.code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
                raise CallFailed(self._unknown(tool)) from error
            raise CallFailed(str(error)) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError) as error:
            raise CallFailed(self._unknown(tool)) from error
        except RuntimeError as error:
            # The library's word for an output that does not fit, or a question to a person.
            raise CallFailed(f"{tool} gave no result that can be used: {error}") from error

    async def _once(self) -> str:
        """Hold one connection; the answer is why it ended."""
        try:
            secrets = Secrets(
                self._credentials.variables(os.environ),
                self._credentials.header_values(os.environ),
            )
        except KeyError as error:
            return f"the variable {error.args[0]} is not set"
        except OSError as error:
            return f"{error.filename} cannot be read"
        ending = self._ending = stdio.ServerExit()
        try:
            await self._hold(secrets, ending)
        except Exception as error:  # noqa: BLE001
            if not ending.event.is_set():
                return secrets.hide(_reason(error))
        finally:
            self._client = None
        words = ending.words.decode(errors="replace").strip()
        return secrets.hide(f"{ending.why}; it said: {words}" if words else ending.why)

    async def _hold(self, secrets: Secrets, ending: stdio.ServerExit) -> None:
        client = Client(
            self._transport(secrets, ending),
            read_timeout_seconds=self._server.start_timeout_s,
            message_handler=self._hear,
            client_info=Implementation(name="fairlead", version="1"),
            cache=None,
        )
        async with client:
            self._client = client
            await self._list(client)
            log.info("tool server connected", extra={"server": self._name})
            following = asyncio.create_task(self._follow(client))
            try:
                await self._stay(client, ending)
            finally:
                await cancel_and_wait(following)

    def _transport(
        self, secrets: Secrets, ending: stdio.ServerExit
    ) -> AbstractAsyncContextManager[TransportStreams]:
        server = self._server
        if server.url is not None:
            return http.spoken(server.url, secrets.headers, server.timeout_s)
        assert server.command is not None, "a server has a command or a url"
        argv = (server.command, *server.args)
        return stdio.start_server(stdio.ServerCommand(argv, secrets.env, server.directory), ending)

    async def _stay(self, client: Client, ending: stdio.ServerExit) -> None:
        """List again whenever the list has changed, until the server is gone."""
        gone = asyncio.create_task(ending.event.wait())
        try:
            while not gone.done():
                news = asyncio.create_task(self._changed.wait())
                await asyncio.wait({gone, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                if self._changed.is_set():
                    await asyncio.sleep(BREATH_S)
                    self._changed.clear()
                    await self._list(client)
        finally:
            gone.cancel()

    async def _list(self, client: Client) -> None:
        found: list[Listed] = []
        cursor: str | None = None
        for _page in range(PAGES_MAX):
            page = await client.list_tools(cursor=cursor)
            found += page.tools
            cursor = page.next_cursor
            if cursor is None or len(found) >= TOOLS_MAX:
                break
        if len(found) > TOOLS_MAX or cursor is not None:
            log.warning("tool server lists too many", extra={"server": self._name})
        self._on_tools(
            convert_tools(self._name, found[:TOOLS_MAX], self.call, self._server.timeout_s)
        )
        self.listed.set()

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    async def _follow(self, client: Client) -> None:
        """Newer servers tell of changes only to who asks for them."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        with suppress(MCPError, SubscriptionLost, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _change in changes:
                    self._changed.set()

    def _unknown(self, tool: str) -> str:
        return f"The server {self._name} did not answer for {tool}: its outcome is unknown."


def _reason(error: BaseException) -> str:
    """The first reason inside a group, in a few words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return (str(error) or type(error).__name__)[:500]
