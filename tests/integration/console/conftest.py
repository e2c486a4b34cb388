"""One stack, one browser and one signed-in person for each file of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from fairlead_testing.console_browser import Console, open_browser, open_console
from fairlead_testing.stack import Stack, stack

CONFIG = """
[agent.build]
permissions = [
  { action = "*", resource = "*", effect = "allow" },
  { action = "bash", resource = "echo ask*", effect = "ask" },
]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """The stack of a file, with the settings that the file adds as `MORE`."""
    place: Path = tmp_path_factory.mktemp("console")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(getattr(request.module, "MORE", "") + CONFIG)
    async with stack(place / "state", config=config, sim=True) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def signed_in(up: Stack, browser: Browser) -> Any:  # noqa: ANN401 - cookies and storage
    async with open_console(up, browser) as console:
        await console.sign_in()
        return await console.context.storage_state()


@pytest_asyncio.fixture(loop_scope="module")
async def console(up: Stack, browser: Browser, signed_in: Any) -> AsyncIterator[Console]:  # noqa: ANN401
    async with open_console(up, browser, storage_state=signed_in) as console:
        yield console
