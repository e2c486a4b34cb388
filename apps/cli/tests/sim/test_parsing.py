"""Our reading of a stream, measured against the official client in the same run."""

import asyncio
import sys
from collections.abc import AsyncIterator

import orjson
import pytest

from fairlead_cli.bench.parse import parsing

pytestmark = pytest.mark.integration


@pytest.fixture
async def far_url() -> AsyncIterator[str]:
    """A simulated provider in a process of its own: neither its time nor its memory counts."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli.sim", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    yield orjson.loads(await process.stdout.readline())["url"]
    process.terminate()
    await process.wait()


async def test_a_stream_is_read_faster_than_by_the_official_client_in_flat_memory(
    far_url: str,
) -> None:
    figures = await parsing(far_url, ["openai-responses"], rounds=2)

    assert figures["parse openai-responses, ours / SDK"] < 1
    assert figures["parse openai-responses, peak at 20,000 / 2,000 chunks"] < 2.5
    assert figures["parse, our slowest / fastest SDK"] < 1
