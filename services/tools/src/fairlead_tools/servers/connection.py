"""Keeps one tool server connected: lists its tools after each change, restarts it when it dies."""

import asyncio
import base64
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    BlobResourceContents,
    CallToolResult,
    Implementation,
    TextResourceContents,
    ToolListChangedNotification,
)
from mcp_types import Tool as McpTool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from fairlead_service.config.tool_servers import Credentials, ToolServerConfig
from fairlead_service.supervise import Restarts, cancel_and_wait, supervise
from fairlead_tools.registry.tool import CallFailed, OutcomeUnknown, Tool
from fairlead_tools.servers import http, stdio
from fairlead_tools.servers.hidden_values import Secrets
from fairlead_tools.servers.limits import (
    ERROR_TAIL_BYTES_MAX,
    PAGES_MAX,
    TOOLS_MAX,
    ServerTimings,
)
from fairlead_tools.servers.tools import ServerInfo, convert_tools

log = logging.getLogger(__name__)

JITTER: Final = 0.2
# Changes within this time are read as one.
SETTLE_S: Final = 0.2
REASON_LENGTH_MAX: Final = 500

for _library in ("mcp", "httpx2", "httpcore2"):
    # Below this level the libraries log what they send, which may hold secrets.
    logging.getLogger(_library).setLevel(logging.ERROR)


class ServerLost(Exception):
    """A connection to a tool server ended, or could not be made."""


class ServerConnection:
    """The connection to one server with one set of credentials."""

    def __init__(
        self,
        name: str,
        server: ToolServerConfig,
        credentials: Credentials,
        on_tools: Callable[[tuple[Tool, ...]], None],
        timings: ServerTimings,
    ) -> None:
        self._name = name
        self._server = server
        self._credentials = credentials
        self._on_tools = on_tools
        self._timings = timings
        self._client: Client | None = None
        self._exit = stdio.ServerExit()
        self._secrets = Secrets({}, {})
        self._changed = asyncio.Event()
        self.listed = asyncio.Event()

    async def run(self) -> None:
        """Connect for ever. The pauses between two connections grow while none of them lasts."""
        timings = self._timings
        restarts = Restarts(
            pause_s=timings.reconnect_s, pause_s_max=timings.reconnect_s_max, jitter=JITTER
        )
        name = f"connection to tool server {self._name}"
        await supervise(name, self._connect_once, restarts=restarts)

    async def _connect_once(self) -> None:
        raise ServerLost(await self._run_connection())

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool. The request is sent at most once. Raises CallFailed."""
        client = self._client
        if client is None or self._exit.event.is_set():
            raise CallFailed(f"The server {self._name} is unavailable: {tool} was not run.")
        try:
            return await client.session.call_tool(
                tool, arguments, read_timeout_seconds=self._server.timeout_s
            )
        except MCPError as error:
            if error.code in {CONNECTION_CLOSED, REQUEST_TIMEOUT}:
                raise OutcomeUnknown(self._unknown(tool)) from error
            raise CallFailed(str(error)) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError) as error:
            raise OutcomeUnknown(self._unknown(tool)) from error
        except RuntimeError as error:
            # The library raises this for an output that does not fit its schema, and for a question.
            raise CallFailed(f"{tool} gave no usable result: {error}") from error

    async def read(self, uri: str) -> tuple[str | None, bytes]:
        """The type and the content of a resource. Raises CallFailed."""
        client = self._client
        if client is None or self._exit.event.is_set():
            raise CallFailed(f"The server {self._name} is unavailable.")
        try:
            result = await client.read_resource(uri)
        except MCPError as error:
            raise CallFailed(f"{self._name}: {self._secrets.hide(str(error))}") from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError) as error:
            raise CallFailed(f"The server {self._name} did not answer.") from error
        except (RuntimeError, ValueError) as error:
            raise CallFailed(f"{self._name} gave no usable resource.") from error
        if not result.contents:
            raise CallFailed(f"{self._name} has nothing at {uri[:200]}.")
        first = result.contents[0]
        if isinstance(first, BlobResourceContents):
            return first.mime_type, base64.b64decode(first.blob)
        texts = [item.text for item in result.contents if isinstance(item, TextResourceContents)]
        return first.mime_type, self._secrets.hide("\n".join(texts)).encode()

    async def _run_connection(self) -> str:
        """Keep one connection until it ends. Returns why it ended."""
        try:
            secrets = self._secrets = Secrets(
                self._credentials.variables(os.environ),
                self._credentials.header_values(os.environ),
                self._credentials.secret_values(os.environ),
            )
        except KeyError as error:
            return f"the variable {error.args[0]} is not set"
        except OSError as error:
            return f"{error.filename} cannot be read"
        server_exit = self._exit = stdio.ServerExit()
        try:
            await self._serve_client(secrets, server_exit)
        except Exception as error:  # noqa: BLE001
            if not server_exit.event.is_set():
                return secrets.hide(_reason(error))[:REASON_LENGTH_MAX]
        finally:
            self._client = None
        output = _whole_words(server_exit.error_tail)
        reason = server_exit.reason
        return secrets.hide(f"{reason}; its last output: {output}" if output else reason)

    async def _serve_client(self, secrets: Secrets, server_exit: stdio.ServerExit) -> None:
        async with (
            self._open_transport(secrets, server_exit) as transport,
            self._new_client(transport) as client,
        ):
            self._client = client
            await self._list_tools(client)
            log.info("tool server connected", extra={"server": self._name})
            subscription = asyncio.create_task(self._subscribe(client))
            try:
                await self._follow_changes(client, server_exit)
            finally:
                await cancel_and_wait(subscription)

    def _new_client(self, transport: Transport) -> Client:
        return Client(
            transport,
            read_timeout_seconds=self._server.start_timeout_s,
            message_handler=self._on_message,
            client_info=Implementation(name="fairlead", version="1"),
            cache=None,
        )

    @asynccontextmanager
    async def _open_transport(
        self, secrets: Secrets, server_exit: stdio.ServerExit
    ) -> AsyncIterator[Transport]:
        server = self._server
        if server.url is not None:
            async with http.open_url(server.url, secrets.headers, server.timeout_s) as transport:
                yield transport
            return
        assert server.command is not None, "a server has a command or a url"
        argv = (server.command, *server.args)
        command = stdio.ServerCommand(argv, secrets.env, server.directory)
        yield stdio.start_server(command, server_exit)

    async def _follow_changes(self, client: Client, server_exit: stdio.ServerExit) -> None:
        """List the tools again after each change, until the server is gone."""
        gone = asyncio.create_task(server_exit.event.wait())
        try:
            while not gone.done():
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({gone, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if self._changed.is_set():
                    await asyncio.sleep(SETTLE_S)
                    self._changed.clear()
                    await self._list_tools(client)
        finally:
            gone.cancel()

    async def _list_tools(self, client: Client) -> None:
        tools: list[McpTool] = []
        cursor: str | None = None
        for _page in range(PAGES_MAX):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) >= TOOLS_MAX:
                break
        if len(tools) > TOOLS_MAX or cursor is not None:
            log.warning(
                "tool server lists too many tools: the others are left out",
                extra={"server": self._name, "max": TOOLS_MAX},
            )
        server = ServerInfo(
            self._name,
            self.call,
            self._server.timeout_s,
            self._server.trust_hints,
            self._secrets.hide,
            self._secrets.hide_in_result,
        )
        self._on_tools(convert_tools(server, tools[:TOOLS_MAX]))
        self.listed.set()

    async def _on_message(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    async def _subscribe(self, client: Client) -> None:
        """Ask for news of changes: servers of newer protocols send them only on request."""
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
    """The message of the first error inside a group."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _whole_words(tail: bytes) -> str:
    """The end of an output as text. A cut first word may be the rest of a secret, so it goes."""
    text = tail.decode(errors="replace")
    words = text.split(maxsplit=1)
    return " ".join(words[1:]).strip() if len(tail) >= ERROR_TAIL_BYTES_MAX else text.strip()
