"""A simulated provider on a free port, for every test that wants one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from fairlead_cli.sim.app import Settings
from fairlead_cli.sim.serve import serve


@pytest.fixture
async def sim_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Its URL; parametrise it with Settings for another one than the plain one."""
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = getattr(request, "param", Settings())
    served = serve("127.0.0.1", 0, ready=url.set_result, stop=stop, settings=settings)
    task = asyncio.create_task(served)
    yield await url
    stop.set()
    await task
