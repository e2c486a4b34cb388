"""A simulated provider on a free port, as a fixture."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_cli.sim.app import SimSettings
from fairlead_cli.sim.server import serve


@pytest.fixture
async def sim_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The URL of the provider; parametrise the fixture with SimSettings to change its settings."""
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = getattr(request, "param", SimSettings())
    serving = serve("127.0.0.1", 0, ready=url.set_result, stop=stop, settings=settings)
    task = asyncio.create_task(serving)
    yield await url
    stop.set()
    await task
