"""The one function that speaks to providers: a request out, canonical events in, never an exception.

No retries here: a failure says whether one could help, and its caller decides.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, TypeAlias

import httpx
import orjson

from fairlead_llm import failure, sse
from fairlead_llm.endpoint import Endpoint
from fairlead_llm.errors import Unsendable
from fairlead_llm.protocol import WIRES, Wire
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish
from fairlead_schema.provider.request import ModelRequest

ERROR_BODY_BYTES_MAX = 64 * 1024
OPENING_BYTES = 16
# Reading a finished body to its end lets the connection be used again; a slow end is not worth it.
DRAIN_S = 0.25

Events: TypeAlias = tuple[ProviderEvent, ...]

_VERSION = re.compile(r"/v\d\w*(?=/|$)")


async def stream(
    client: httpx.AsyncClient, endpoint: Endpoint, request: ModelRequest
) -> AsyncGenerator[ProviderEvent, None]:
    """One provider attempt. Ends with exactly one StepFinish or ProviderFailure.

    A failure is retryable only while nothing was published. Closing or cancelling it closes the
    socket: wrap it in `contextlib.aclosing`, and read to the end to give the connection back.
    """
    published = False
    async with aclosing(_attempt(client, endpoint, request)) as batches:
        async for events in batches:
            for event in events:
                if isinstance(event, ProviderFailure):
                    told = failure.without(_secrets(endpoint, request), event)
                    yield replace(told, retryable=told.retryable and not published)
                    return
                yield event
                published = True


def _secrets(endpoint: Endpoint, request: ModelRequest) -> tuple[str, ...]:
    """What no failure may repeat: the key, and every header that is named like one."""
    given = {**endpoint.headers, **request.headers}
    named = (value for name, value in given.items() if failure.secret(name))
    return tuple(value for value in (endpoint.api_key, *named) if value)


async def _attempt(
    client: httpx.AsyncClient, endpoint: Endpoint, request: ModelRequest
) -> AsyncGenerator[Events, None]:
    wire = WIRES.get(endpoint.protocol)
    if wire is None:
        yield (failure.failed("invalid-request", f"Unknown protocol: {endpoint.protocol}"),)
        return
    try:
        outgoing = _outgoing(client, endpoint, wire, request)
    except (Unsendable, TypeError, ValueError, httpx.InvalidURL) as error:
        yield (failure.failed("invalid-request", f"The request cannot be sent: {error}"),)
        return
    try:
        async with aclosing(_exchange(client, endpoint, wire, outgoing)) as batches:
            async for events in batches:
                yield events
    except (TimeoutError, httpx.HTTPError, httpx.StreamError, sse.FrameTooLarge) as error:
        yield (_unheard(error),)


def _outgoing(
    client: httpx.AsyncClient, endpoint: Endpoint, wire: Wire[Any], request: ModelRequest
) -> httpx.Request:
    timeout = httpx.Timeout(
        connect=endpoint.connect_s, pool=endpoint.connect_s, write=endpoint.idle_s, read=None
    )
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
    }
    return client.build_request(
        "POST",
        _url(endpoint.base_url, wire.path(request)),
        content=orjson.dumps(wire.body(request)),
        headers=headers | wire.headers(endpoint.api_key) | dict(endpoint.headers) | request.headers,
        timeout=timeout,
    )


def _url(base: str, path: str) -> str:
    """The path below the base; a base that names an API version replaces the path's own."""
    base = base.rstrip("/")
    if _VERSION.search(httpx.URL(base).path):
        path = _VERSION.sub("", path, count=1)
    return base + path


async def _exchange(
    client: httpx.AsyncClient, endpoint: Endpoint, wire: Wire[Any], outgoing: httpx.Request
) -> AsyncGenerator[Events, None]:
    """Batches of events, one for each read that completes a frame."""
    first_byte = asyncio.get_running_loop().time() + endpoint.first_byte_s
    async with asyncio.timeout_at(first_byte):
        response = await client.send(outgoing, stream=True, follow_redirects=False)
    try:
        if refusal := await _refusal(response, endpoint):
            yield (refusal,)
            return
        async with aclosing(_chunks(response, first_byte, endpoint.idle_s)) as chunks:
            async with aclosing(_events(wire, chunks)) as batches:
                async for events in batches:
                    yield events
            await _drain(chunks)
    finally:
        await response.aclose()


async def _refusal(response: httpx.Response, endpoint: Endpoint) -> ProviderFailure | None:
    """Why this answer is no stream, if it is none."""
    kind = response.headers.get("content-type", "text/event-stream").partition(";")[0].strip()
    streaming = kind.lower() == "text/event-stream"
    if response.status_code == httpx.codes.OK and streaming:
        return None
    body = (await _bounded(response, endpoint.idle_s)).decode(errors="replace")
    if response.status_code != httpx.codes.OK:
        return failure.refused(response.status_code, response.headers, body)
    unfit = failure.failed("malformed-stream", f"The answer is {kind}, not an event stream")
    return replace(unfit, status=response.status_code, body=failure.redacted(body))


async def _bounded(response: httpx.Response, patience_s: float) -> bytes:
    """As much of an error body as is worth keeping; what came before a break is enough."""
    body = b""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(patience_s):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= ERROR_BODY_BYTES_MAX:
                    break
    return body[:ERROR_BODY_BYTES_MAX]


async def _chunks(
    response: httpx.Response, first_byte: float, idle_s: float
) -> AsyncGenerator[bytes, None]:
    """The body's reads, each awaited with the patience that its place allows."""
    loop = asyncio.get_running_loop()
    reads = response.aiter_bytes()
    deadline = first_byte
    while True:
        async with asyncio.timeout_at(deadline):
            chunk = await anext(reads, None)
        if chunk is None:
            return
        yield chunk
        deadline = loop.time() + idle_s


async def _events(wire: Wire[Any], chunks: AsyncIterator[bytes]) -> AsyncGenerator[Events, None]:
    reading, state, opening, heard = sse.START, wire.start(), b"", False
    async for chunk in chunks:
        opening = opening or chunk[:OPENING_BYTES]
        reading, frames = sse.feed(reading, chunk)
        heard = heard or bool(frames)
        events: list[ProviderEvent] = []
        for frame in frames:
            state, told = wire.step(state, frame)
            events += told
        if events:
            yield tuple(events)
            if isinstance(events[-1], StepFinish | ProviderFailure):
                return
    unfit = failure.failed("malformed-stream", "The body is no event stream")
    yield wire.finish(state) if heard or sse.begins(opening) else (unfit,)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


def _unheard(error: Exception) -> ProviderFailure:
    match error:
        case sse.FrameTooLarge():
            return failure.failed("malformed-stream", str(error))
        case httpx.DecodingError():
            return failure.failed("malformed-stream", f"The body cannot be decoded: {error}")
        case httpx.ConnectTimeout():
            return failure.failed("timeout", "The provider did not accept a connection in time")
        case httpx.PoolTimeout():
            return failure.failed("timeout", "No connection to the provider became free in time")
        case TimeoutError() | httpx.TimeoutException():
            return failure.failed("timeout", "The provider sent nothing for too long")
        case httpx.LocalProtocolError() | httpx.UnsupportedProtocol():
            # The library's own words may quote the offending header, and with it the key.
            return failure.failed("invalid-request", "The request cannot be written as HTTP")
        case _:
            return failure.failed("network", f"{type(error).__name__}: {error}")
