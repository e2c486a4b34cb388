"""Resources of a real tool server, as prompts attach them."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from fairlead_service.config.configuration import Config
from fairlead_tools.attachments.content import NotTaken, RawContent
from fairlead_tools.registry.registry import Registry
from fairlead_tools.registry.tool import CallFailed
from fairlead_tools.servers.pool import ToolServers

SUPPORT = Path(__file__).parents[4] / "tests" / "support"


async def test_a_resource_is_read_from_the_server_that_the_uri_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-23: plain or percent-encoded, without the server's secrets; every refusal has a reason."""
    monkeypatch.setenv("TEST_SECRET", "s3cret")
    server = {
        "command": sys.executable,
        "args": ["-m", "fairlead_testing.tool_server", str(tmp_path / "calls")],
        "env": {"PYTHONPATH": os.pathsep.join((str(SUPPORT), *sys.path))},
        "env_from": {"SECRET": "TEST_SECRET"},
    }
    registry = Registry()
    servers = ToolServers(Config.model_validate({"mcp": {"docs": server}}), registry)
    note: RawContent | None = None
    async with servers.connect():
        async with asyncio.timeout(60):
            while note is None:
                try:
                    note = await servers.read_resource("default", "mcp://docs/note://tides")
                except CallFailed:
                    await asyncio.sleep(0.1)
        assert note == RawContent(note.data, "tides", "text/plain")
        assert note.data.startswith(b"high at noon ")
        assert b"s3cret" not in note.data
        encoded = await servers.read_resource("default", "mcp:docs/note%3A%2F%2Ftides")
        assert encoded.data == note.data
        with pytest.raises(CallFailed):
            await servers.read_resource("default", "mcp://docs/note://nothing")
        with pytest.raises(NotTaken, match="no tool server 'other'"):
            await servers.read_resource("default", "mcp://other/note://tides")
