"""Reading a model's stream: ours and the official clients in one run, and memory by length.

Time is this process's own CPU time, so that a provider in another process does not count.
"""

import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import httpx

from fairlead_cli.bench.official import CLIENTS, Reader
from fairlead_llm.endpoint import Endpoint
from fairlead_llm.http import stream
from fairlead_llm.protocol import WIRES
from fairlead_schema.provider import StepFinish, TextChunk
from fairlead_schema.request import ModelRequest, TextPart, UserTurn

CHUNKS: Final = 2_000
LONG: Final = 20_000
ROUNDS: Final = 7
_MICRO: Final = 1_000_000


async def parsing(sim_url: str) -> dict[str, float]:
    """Figures by name, from the simulated provider at this URL.

    For each protocol: µs of CPU per chunk, ours and the official client's; their ratio, where less
    than one is faster than it; and the peak memory of a stream ten times as long, in times. At the
    end, ours against the fastest official client: the slowest of our protocols decides.
    """
    figures: dict[str, float] = {}
    official: list[float] = []
    ours: list[float] = []
    for protocol in sorted(WIRES):
        mine, theirs = await _compared(sim_url, protocol)
        figures[f"parse {protocol}, µs/chunk"] = mine
        ours.append(mine)
        if theirs is not None:
            official.append(theirs)
            figures[f"parse {protocol} by its SDK, µs/chunk"] = theirs
            figures[f"parse {protocol}, ours / SDK"] = mine / theirs
        short, long = await _peaks(sim_url, protocol)
        figures[f"parse {protocol}, peak KiB"] = long / 1024
        figures[f"parse {protocol}, peak at {LONG:,} / {CHUNKS:,} chunks"] = long / short
    if official:
        figures["parse, our slowest / fastest SDK"] = max(ours) / min(official)
    return figures


async def _compared(url: str, protocol: str) -> tuple[float, float | None]:
    """The best round of each, their rounds taken in turns."""
    async with AsyncExitStack() as stack:
        readers: list[Reader] = [await stack.enter_async_context(_ours(url, protocol))]
        with suppress(ImportError):
            readers.append(await stack.enter_async_context(CLIENTS[protocol](url)))
        taken: list[list[float]] = [[] for _ in readers]
        for _ in range(ROUNDS):
            for reader, times in zip(readers, taken, strict=True):
                times.append(await _timed(reader))
    mine, *theirs = (min(times[1:]) / CHUNKS * _MICRO for times in taken)
    return mine, theirs[0] if theirs else None


async def _timed(read: Reader) -> float:
    began = time.process_time()
    count = await read(f"chunks-{CHUNKS}")
    assert count == CHUNKS, f"{count} chunks of {CHUNKS} were read"
    return time.process_time() - began


async def _peaks(url: str, protocol: str) -> tuple[int, int]:
    """The most memory that reading a short and a long stream held at once."""
    async with _ours(url, protocol) as read:
        await read(f"chunks-{CHUNKS}")
        tracemalloc.start()
        try:
            peaks = []
            for length in (CHUNKS, LONG):
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                await read(f"chunks-{length}")
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    short, long = peaks
    return max(1, short), long


@asynccontextmanager
async def _ours(url: str, protocol: str) -> AsyncIterator[Reader]:
    endpoint = Endpoint(protocol, url)
    turns = (UserTurn((TextPart("x"),)),)
    async with httpx.AsyncClient(trust_env=False) as client:

        async def read(model: str) -> int:
            count, event = 0, None
            async for event in stream(client, endpoint, ModelRequest(model, turns=turns)):
                count += isinstance(event, TextChunk)
            assert isinstance(event, StepFinish), event
            return count

        yield read
