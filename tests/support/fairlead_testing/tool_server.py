"""A small MCP server for tests, over its standard streams or at a port: helpful, slow or a nuisance.

`python -m fairlead_testing.tool_server FILE [PORT]`: every call leaves a line in the file.
"""

import asyncio
import base64
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

MEGABYTE = 1024 * 1024
# The library keeps the stream for itself while it serves: what is printed goes elsewhere.
WIRE = os.dup(1)


def note(line: str) -> None:
    """One line per call, so that calls can be counted."""
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{line}\n")


def raw(text: str) -> None:
    """Say something past the protocol, on its own stream.

    From a coroutine that waits for nothing: so no message of the protocol is cut in two.
    """
    rest = text.encode()
    while rest:
        rest = rest[os.write(WIRE, rest) :]


server = MCPServer("tests")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    note(f"add {a} {b}")
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def environment() -> list[str]:
    """The names of the variables, and the one that is secret: as it is, and backwards."""
    secret = os.environ.get("SECRET", "")
    return [*sorted(os.environ), f"plain={secret}", f"secret={secret[::-1]}"]


@server.tool()
async def slow(key: str, seconds: float = 60) -> str:
    """Takes its time."""
    note(f"slow {key} {os.getpid()}")
    await asyncio.sleep(seconds)
    note(f"ended {key}")
    return key


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=base64.b64decode("iVBORw0KGgo="), format="png")


@server.resource("note://tides")
def tides() -> str:
    """A note that prompts attach."""
    return f"high at noon {os.environ.get('SECRET', '')}"


@server.tool()
def fails() -> str:
    """Says why it cannot."""
    raise ToolError("not today")


@server.tool()
def refuse() -> str:
    """Repeats its credential in the reason."""
    raise ToolError(f"refused {os.environ.get('SECRET', '')}")


@server.tool()
def huge(megabytes: int) -> str:
    """A long text."""
    return "x" * (megabytes * MEGABYTE)


@server.tool()
async def chatter(count: int) -> str:
    """Notifications nobody asked for, greetings that are no messages, and a lot of complaints."""
    changed = '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n'
    odd = '{"jsonrpc": "2.0", "method": "notifications/odd"}\n'
    for _ in range(count):
        raw(f"hello\n{changed}{odd}")
        sys.stderr.write("complaint " * 100)
    return "said"


@server.tool()
async def flood(kind: str) -> str:
    """Never stops talking and never answers: noise on the protocol's stream, or complaints."""
    note(f"flood {kind}")
    while True:
        if kind == "noise":
            raw(("hello " * 100 + "\n") * 100)
        else:
            sys.stderr.write("complaint " * 1000)


@server.tool()
def stamp(key: str) -> str:
    """Does something that cannot be undone."""
    note(f"stamp {key}")
    return key


@server.tool()
async def grow(context: Context) -> str:
    """Lists one more tool from now on."""

    def grown() -> str:
        """New."""
        return "grown"

    server.add_tool(grown)
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()
    return "grew"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
