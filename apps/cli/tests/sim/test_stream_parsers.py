"""Our parser of a model stream against the official client, measured in the same run."""

import asyncio
import sys
from collections.abc import AsyncIterator

import orjson
import pytest

from fairlead_cli.bench.stream_parsers import compare_parsers

pytestmark = pytest.mark.integration


@pytest.fixture
async def process_url() -> AsyncIterator[str]:
    """A simulated provider in its own process, so that its time and memory do not count."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairlead_cli", "sim", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    yield orjson.loads(await process.stdout.readline())["url"]
    process.terminate()
    await process.wait()


async def test_a_stream_is_read_faster_than_by_the_official_client_in_flat_memory(
    process_url: str,
) -> None:
    figures = await compare_parsers(process_url, ["openai-responses"], rounds=2)

    assert figures["parse openai-responses, ours / SDK"] < 1
    assert figures["parse openai-responses, peak at 20,000 / 2,000 chunks"] < 2.5
    assert figures["parse, our slowest / fastest SDK"] < 1
