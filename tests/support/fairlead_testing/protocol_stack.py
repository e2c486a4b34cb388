"""A stack for the tests of other protocols: `bash` asks, everything else is allowed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairlead_service.identity.key_file import add_key
from fairlead_service.identity.keys import mint_key
from fairlead_testing.stack import Stack, stack

CONFIG = """
permissions = [
  { action = "*", resource = "*", effect = "allow" },
  { action = "bash", resource = "*", effect = "ask" },
]
"""


@asynccontextmanager
async def protocol_stack(place: Path) -> AsyncIterator[Stack]:
    """It runs with the simulated provider. Its tool workers may use every place of the test."""
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o777)
    (place / "fairlead.toml").write_text(CONFIG)
    async with stack(place / "state", config=place / "fairlead.toml", sim=True) as running:
        yield running


def shell_prompt(command: str, answer: str = "done it") -> str:
    """A prompt whose turn runs a command, which asks first, and then answers."""
    return f"""[[sim: tool=bash args='{{"command":"{command}"}}'; answer="{answer}"]] go"""


async def add_stranger(up: Stack) -> str:
    """The key of an administrator of another tenant, after the gateway has read it."""
    key, entry = mint_key(("admin",), tenant="acme")
    add_key(up.up.state.keys, entry)
    headers = {"authorization": f"Bearer {key}"}
    async with asyncio.timeout(30):
        while (await up.http.get("/api/session", headers=headers)).is_error:
            await asyncio.sleep(0.1)
    return key
