"""Compares our parser of model streams with the official clients: CPU time, and memory by length.

CPU time is of this process alone, so the provider in another process does not count.
"""

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import httpx

from fairlead_cli.bench.official_clients import CLIENTS, Reader
from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.http import stream
from fairlead_llm.protocol import PROTOCOLS
from fairlead_schema.provider.events import StepFinish, TextChunk
from fairlead_schema.provider.request import ModelRequest, TextPart, UserTurn

CHUNKS: Final = 2_000
LONG: Final = 20_000
ROUNDS: Final = 6
TURNS: Final = (UserTurn((TextPart("x"),)),)
AGAINST_SDK: Final = "parse, our slowest / fastest SDK"
"""The figure that may be at most one; absent where no official client is installed."""
_MICRO: Final = 1_000_000


async def compare_parsers(
    sim_url: str, protocols: Sequence[str] = tuple(sorted(PROTOCOLS)), *, rounds: int = ROUNDS
) -> dict[str, float]:
    """Figures by name, from the simulated provider at this URL.

    For each protocol: CPU time per chunk, ours and the official client's, and their ratio (below one,
    ours is faster); our peak memory, and its growth for a stream ten times as long (one is flat).
    Last, our slowest protocol against the fastest official client.
    """
    figures: dict[str, float] = {}
    official: list[float] = []
    ours: list[float] = []
    for protocol in protocols:
        own, sdk = await _time_readers(sim_url, protocol, rounds)
        figures[f"parse {protocol}, µs/chunk"] = own
        ours.append(own)
        if sdk is not None:
            official.append(sdk)
            figures[f"parse {protocol} by its SDK, µs/chunk"] = sdk
            figures[f"parse {protocol}, ours / SDK"] = own / sdk
        short, long = await asyncio.to_thread(_peak_memories, sim_url, protocol)
        figures[f"parse {protocol}, peak KiB"] = long / 1024
        figures[f"parse {protocol}, peak at {LONG:,} / {CHUNKS:,} chunks"] = long / short
    if official:
        figures[AGAINST_SDK] = max(ours) / min(official)
    return figures


async def _time_readers(url: str, protocol: str, rounds: int) -> tuple[float, float | None]:
    """The best round of each reader. Rounds alternate, and the first is not counted."""
    async with AsyncExitStack() as stack:
        readers: list[Reader] = [await stack.enter_async_context(_own_reader(url, protocol))]
        with suppress(ImportError):
            readers.append(await stack.enter_async_context(CLIENTS[protocol](url)))
        durations: list[list[float]] = [[] for _ in readers]
        for _ in range(rounds + 1):
            for reader, times in zip(readers, durations, strict=True):
                times.append(await _time_stream(reader))
    own, *sdk = (min(times[1:]) / CHUNKS * _MICRO for times in durations)
    return own, sdk[0] if sdk else None


async def _time_stream(read: Reader) -> float:
    start = time.process_time()
    count = await read(f"chunks-{CHUNKS}")
    assert count == CHUNKS, f"{count} chunks of {CHUNKS} were read"
    return time.process_time() - start


def _peak_memories(url: str, protocol: str) -> tuple[int, int]:
    """The peak memory while a short and a long stream are read.

    A plain event loop is used, because uvloop reads ahead as fast as a local server writes.
    """
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        tracemalloc.start()
        try:
            _, short, long = (
                runner.run(_peak_memory(url, protocol, length)) for length in (CHUNKS, CHUNKS, LONG)
            )
        finally:
            tracemalloc.stop()
    return short, long


async def _peak_memory(url: str, protocol: str, length: int) -> int:
    """The peak up to the last text chunk, because some last frames repeat the whole answer."""
    peak = 0
    async with httpx.AsyncClient(trust_env=False) as client:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        request = ModelRequest(f"chunks-{length}", turns=TURNS)
        async for event in stream(client, ProviderEndpoint(protocol, url), request):
            if isinstance(event, TextChunk):
                _, peak = tracemalloc.get_traced_memory()
    return peak - before


@asynccontextmanager
async def _own_reader(url: str, protocol: str) -> AsyncIterator[Reader]:
    endpoint = ProviderEndpoint(protocol, url)
    async with httpx.AsyncClient(trust_env=False) as client:

        async def read(model: str) -> int:
            count, event = 0, None
            async for event in stream(client, endpoint, ModelRequest(model, turns=TURNS)):
                if isinstance(event, TextChunk):
                    # Chunks of one read are joined. Each chunk of the provider is one word.
                    count += event.text.count("word")
            assert isinstance(event, StepFinish), event
            return count

        yield read
