"""One stack per module: every process is real, and what a test kills is started again."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_testing.stack import Stack, stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack with two runners and the simulated provider."""
    place: Path = tmp_path_factory.mktemp("stack")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    async with stack(place / "state", scale={"runner": 2}) as running:
        yield running
