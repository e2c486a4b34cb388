"""Readers of a model's stream that use the official clients, to compare our parser with.

The clients are no dependency of Fairlead, so each function imports its own.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import TypeAlias

Reader: TypeAlias = Callable[[str], Awaitable[int]]
"""Reads the stream of a model to its end and returns the number of text chunks."""

Client: TypeAlias = Callable[[str], AbstractAsyncContextManager[Reader]]


@asynccontextmanager
async def anthropic_reader(url: str) -> AsyncIterator[Reader]:
    import anthropic  # noqa: PLC0415 - a client that may not be installed

    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:

        async def read(model: str) -> int:
            stream = await client.messages.create(
                model=model,
                max_tokens=9,
                messages=[{"role": "user", "content": "x"}],
                stream=True,
            )
            return sum([event.type == "content_block_delta" async for event in stream])

        yield read


@asynccontextmanager
async def responses_reader(url: str) -> AsyncIterator[Reader]:
    import openai  # noqa: PLC0415 - a client that may not be installed

    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:

        async def read(model: str) -> int:
            stream = await client.responses.create(model=model, input="x", stream=True)
            return sum([event.type == "response.output_text.delta" async for event in stream])

        yield read


@asynccontextmanager
async def chat_reader(url: str) -> AsyncIterator[Reader]:
    import openai  # noqa: PLC0415 - a client that may not be installed

    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:

        async def read(model: str) -> int:
            stream = await client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "x"}], stream=True
            )
            return sum(
                [bool(chunk.choices and chunk.choices[0].delta.content) async for chunk in stream]
            )

        yield read


@asynccontextmanager
async def google_reader(url: str) -> AsyncIterator[Reader]:
    from google import genai  # noqa: PLC0415 - a client that may not be installed
    from google.genai import types  # noqa: PLC0415 - a client that may not be installed

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))

    async def read(model: str) -> int:
        stream = await client.aio.models.generate_content_stream(model=model, contents="x")
        return sum([bool(chunk.text) async for chunk in stream])

    try:
        yield read
    finally:
        await client.aio.aclose()
        client.close()


CLIENTS: Mapping[str, Client] = MappingProxyType(
    {
        "anthropic-messages": anthropic_reader,
        "openai-responses": responses_reader,
        "openai-chat": chat_reader,
        "gemini": google_reader,
    }
)
