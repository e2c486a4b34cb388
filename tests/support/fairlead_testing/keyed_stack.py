"""A stack whose providers want keys, beside the simulated one that wants none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fairlead_testing.stack import Stack, stack

KEY: Final = "sk-live-4f9a77c2d1"
TEAM: Final = "tok-team-88e0b3"
MISSING: Final = "FAIRLEAD_TEST_NO_SUCH_KEY"
CONFIG: Final = """\
[provider.keyed]
protocol = "openai-chat"
base_url = "{url}"
api_key_file = "{key}"
headers = {{ x-team-token = "{team}" }}
[provider.keyed.model.m]

[provider.unkeyed]
protocol = "openai-chat"
base_url = "{url}"
api_key_env = "{missing}"
[provider.unkeyed.model.m]
variant.high.body = {{ seed = 1 }}
"""


@dataclass(frozen=True)
class KeyedStack:
    """The stack, where it keeps its state, and the heads of what its keyed provider was asked."""

    up: Stack
    state: Path
    asked: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def keyed_stack() -> AsyncIterator[KeyedStack]:
    """Its keyed provider refuses every key and repeats it, in words and in a field."""
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = f'{{"error":{{"message":"bad key {KEY} of {TEAM}","key":"{KEY}"}}}}'.encode()
        start = b"HTTP/1.1 401 No\r\ncontent-type: application/json\r\nconnection: close\r\n"
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(start + b"content-length: %d\r\n\r\n" % len(body) + body)

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    with TemporaryDirectory(prefix="fairlead-", ignore_cleanup_errors=True) as directory:
        config = _write_config(
            Path(directory), f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        )
        state, scale = Path(directory) / "state", {"runner": 2}
        async with server, stack(state, scale=scale, config=config, sim=True) as up:
            yield KeyedStack(up, state, asked)


def _write_config(place: Path, url: str) -> Path:
    place.chmod(0o755)
    key, config = place / "key", place / "fairlead.toml"
    key.write_text(f"{KEY}\n")
    config.write_text(CONFIG.format(url=url, key=key, team=TEAM, missing=MISSING))
    return config
