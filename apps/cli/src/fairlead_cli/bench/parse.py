"""Reading a model's stream: ours and the official clients in one run, and memory by length.

Time is this process's own CPU time, so that a provider in another process does not count.
"""

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import httpx

from fairlead_cli.bench.official import CLIENTS, Reader
from fairlead_llm.endpoint import Endpoint
from fairlead_llm.http import stream
from fairlead_llm.protocol import WIRES
from fairlead_schema.provider.events import StepFinish, TextChunk
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

CHUNKS: Final = 2_000
LONG: Final = 20_000
ROUNDS: Final = 6
TURNS: Final = (UserTurn((TextPart("x"),)),)
AGAINST_SDK: Final = "parse, our slowest / fastest SDK"
"""The figure that has to reach one; absent where no official client is installed."""
_MICRO: Final = 1_000_000


async def parsing(
    sim_url: str, protocols: Sequence[str] = tuple(sorted(WIRES)), *, rounds: int = ROUNDS
) -> dict[str, float]:
    """Figures by name, from the simulated provider at this URL.

    For each protocol: µs of CPU per chunk, ours and the official client's; their ratio, where less
    than one is faster than it; and the peak memory of a stream ten times as long, in times: one is
    flat. At the end, our slowest protocol against the fastest official client.
    """
    figures: dict[str, float] = {}
    official: list[float] = []
    ours: list[float] = []
    for protocol in protocols:
        mine, theirs = await _compared(sim_url, protocol, rounds)
        figures[f"parse {protocol}, µs/chunk"] = mine
        ours.append(mine)
        if theirs is not None:
            official.append(theirs)
            figures[f"parse {protocol} by its SDK, µs/chunk"] = theirs
            figures[f"parse {protocol}, ours / SDK"] = mine / theirs
        short, long = await asyncio.to_thread(_peaks, sim_url, protocol)
        figures[f"parse {protocol}, peak KiB"] = long / 1024
        figures[f"parse {protocol}, peak at {LONG:,} / {CHUNKS:,} chunks"] = long / short
    if official:
        figures[AGAINST_SDK] = max(ours) / min(official)
    return figures


async def _compared(url: str, protocol: str, rounds: int) -> tuple[float, float | None]:
    """The best round of each, their rounds taken in turns, the first not counted."""
    async with AsyncExitStack() as stack:
        readers: list[Reader] = [await stack.enter_async_context(_ours(url, protocol))]
        with suppress(ImportError):
            readers.append(await stack.enter_async_context(CLIENTS[protocol](url)))
        taken: list[list[float]] = [[] for _ in readers]
        for _ in range(rounds + 1):
            for reader, times in zip(readers, taken, strict=True):
                times.append(await _timed(reader))
    mine, *theirs = (min(times[1:]) / CHUNKS * _MICRO for times in taken)
    return mine, theirs[0] if theirs else None


async def _timed(read: Reader) -> float:
    began = time.process_time()
    count = await read(f"chunks-{CHUNKS}")
    assert count == CHUNKS, f"{count} chunks of {CHUNKS} were read"
    return time.process_time() - began


def _peaks(url: str, protocol: str) -> tuple[int, int]:
    """The most memory held while a short and a long stream were read.

    On a plain event loop: uvloop reads ahead of its reader, as fast as a local server writes.
    """
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        tracemalloc.start()
        try:
            _, short, long = (
                runner.run(_held(url, protocol, length)) for length in (CHUNKS, CHUNKS, LONG)
            )
        finally:
            tracemalloc.stop()
    return short, long


async def _held(url: str, protocol: str, length: int) -> int:
    """The peak up to the last text: some protocols repeat the whole answer in their last frame."""
    peak = 0
    async with httpx.AsyncClient(trust_env=False) as client:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        request = ModelRequest(f"chunks-{length}", turns=TURNS)
        async for event in stream(client, Endpoint(protocol, url), request):
            if isinstance(event, TextChunk):
                _, peak = tracemalloc.get_traced_memory()
    return peak - before


@asynccontextmanager
async def _ours(url: str, protocol: str) -> AsyncIterator[Reader]:
    endpoint = Endpoint(protocol, url)
    async with httpx.AsyncClient(trust_env=False) as client:

        async def read(model: str) -> int:
            count, event = 0, None
            async for event in stream(client, endpoint, ModelRequest(model, turns=TURNS)):
                count += isinstance(event, TextChunk)
            assert isinstance(event, StepFinish), event
            return count

        yield read
