"""The one function that calls providers: it sends a request and yields canonical events.

It never raises for a failed request and never retries: a failure says whether a retry can help,
and the caller decides.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import httpx
import orjson

from fairlead_llm import failure, sse
from fairlead_llm.calls.call_ids import CallIds
from fairlead_llm.chunks import join_chunks
from fairlead_llm.endpoint import ProviderEndpoint
from fairlead_llm.errors import UnsendableRequest
from fairlead_llm.protocol import PROTOCOLS, WireProtocol
from fairlead_schema.provider.events import ProviderEvent, ProviderFailure, StepFinish
from fairlead_schema.provider.request import ModelRequest

ERROR_BODY_BYTES_MAX = 64 * 1024
OPENING_BYTES = 16
# A body read to its end gives its connection back. Waiting longer costs more than a new connection.
DRAIN_S = 0.25
URLS_MAX = 256

State = TypeVar("State")
Events: TypeAlias = tuple[ProviderEvent, ...]

_VERSION = re.compile(r"/v\d\w*(?=/|$)")


async def stream(
    client: httpx.AsyncClient, endpoint: ProviderEndpoint, request: ModelRequest
) -> AsyncGenerator[ProviderEvent, None]:
    """One provider attempt. It ends with exactly one StepFinish or ProviderFailure.

    A failure is retryable only before the first published event. Closing the generator closes the
    socket: wrap it in `contextlib.aclosing`, and read to the end to give the connection back.
    """
    published, ids = False, CallIds()
    async with aclosing(_attempt(client, endpoint, request)) as batches:
        async for events in batches:
            for event in events:
                if isinstance(event, ProviderFailure):
                    safe = failure.remove_secrets(_secrets(endpoint, request), event)
                    yield replace(safe, retryable=safe.retryable and not published)
                    return
                yield ids.separate(event)
                published = True


def _secrets(endpoint: ProviderEndpoint, request: ModelRequest) -> tuple[str, ...]:
    """The texts that no failure may repeat: the key, and every secret or private header."""
    headers = {**endpoint.headers, **request.headers}
    private = request.private_headers
    secrets = (
        value
        for name, value in headers.items()
        if failure.is_secret(name) or name.lower() in private
    )
    return tuple(value for value in (endpoint.api_key, *secrets) if value)


def configured_headers(endpoint: ProviderEndpoint, request: ModelRequest) -> frozenset[str]:
    """The names, in lower case, of the headers that a request has before any transform."""
    wire = PROTOCOLS.get(endpoint.protocol)
    own = {} if wire is None else wire.headers(endpoint.api_key)
    return frozenset(name.lower() for name in (*own, *endpoint.headers, *request.headers))


async def _attempt(
    client: httpx.AsyncClient, endpoint: ProviderEndpoint, request: ModelRequest
) -> AsyncGenerator[Events, None]:
    wire = PROTOCOLS.get(endpoint.protocol)
    if wire is None:
        yield (failure.new_failure("invalid-request", f"Unknown protocol: {endpoint.protocol}"),)
        return
    try:
        outgoing = _build_request(client, endpoint, wire, request)
    except (UnsendableRequest, TypeError, ValueError, httpx.InvalidURL) as error:
        yield (failure.new_failure("invalid-request", f"The request cannot be sent: {error}"),)
        return
    try:
        async with aclosing(_exchange(client, endpoint, wire, outgoing)) as batches:
            async for events in batches:
                yield events
    except (TimeoutError, httpx.HTTPError, httpx.StreamError, sse.FrameTooLarge) as error:
        yield (_transport_failure(error),)


def _build_request(
    client: httpx.AsyncClient,
    endpoint: ProviderEndpoint,
    wire: WireProtocol[Any],
    request: ModelRequest,
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
        headers=_merge_headers(
            headers, wire.headers(endpoint.api_key), endpoint.headers, request.headers
        ),
        timeout=timeout,
    )


def _merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """All headers. A later layer replaces a header of an earlier one, however each spells its name."""
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        merged |= {name.lower(): (name, value) for name, value in layer.items()}
    return dict(merged.values())


@lru_cache(URLS_MAX)
def _url(base: str, path: str) -> httpx.URL:
    """The base and the path. An API version in the base replaces the version of the path."""
    base = base.rstrip("/")
    if _VERSION.search(httpx.URL(base).path):
        path = _VERSION.sub("", path, count=1)
    return httpx.URL(base + path)


async def _exchange(
    client: httpx.AsyncClient,
    endpoint: ProviderEndpoint,
    wire: WireProtocol[Any],
    outgoing: httpx.Request,
) -> AsyncGenerator[Events, None]:
    """Yield one batch of events for each chunk that completes a frame."""
    first_byte = asyncio.get_running_loop().time() + endpoint.first_byte_s
    async with asyncio.timeout_at(first_byte):
        response = await client.send(outgoing, stream=True, follow_redirects=False)
    try:
        if refusal := await _refusal(response, endpoint):
            yield (refusal,)
            return
        async with aclosing(_chunks(response, first_byte, endpoint.idle_s)) as chunks:
            async with aclosing(_parse_events(wire, chunks)) as batches:
                async for events in batches:
                    yield events
            await _drain(chunks)
    finally:
        await response.aclose()


async def _refusal(response: httpx.Response, endpoint: ProviderEndpoint) -> ProviderFailure | None:
    """The failure of a response that is no event stream, else None."""
    kind = response.headers.get("content-type", "text/event-stream").partition(";")[0].strip()
    streaming = kind.lower() == "text/event-stream"
    if response.status_code == httpx.codes.OK and streaming:
        return None
    body = (await _read_error_body(response, endpoint.idle_s)).decode(errors="replace")
    if response.status_code != httpx.codes.OK:
        return failure.http_failure(response.status_code, response.headers, body)
    wrong_type = failure.new_failure(
        "malformed-stream", f"The answer is {kind}, not an event stream"
    )
    return replace(wrong_type, status=response.status_code, body=failure.redact(body))


async def _read_error_body(response: httpx.Response, timeout_s: float) -> bytes:
    """The first bytes of an error body. A timeout or a broken connection ends it early."""
    body = b""
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(timeout_s):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) >= ERROR_BODY_BYTES_MAX:
                    break
    return body[:ERROR_BODY_BYTES_MAX]


async def _chunks(
    response: httpx.Response, first_byte: float, idle_s: float
) -> AsyncGenerator[bytes, None]:
    """The chunks of the body, with one timeout for the first chunk and one for each later chunk."""
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


async def _parse_events(
    wire: WireProtocol[Any], chunks: AsyncIterator[bytes]
) -> AsyncGenerator[Events, None]:
    parser, state, opening, has_frames = sse.START, wire.start(), b"", False
    async for chunk in chunks:
        opening = opening or chunk[:OPENING_BYTES]
        parser, frames = sse.feed(parser, chunk)
        has_frames = has_frames or bool(frames)
        state, events = _read_frames(wire, state, frames)
        if events:
            yield events
            if isinstance(events[-1], StepFinish | ProviderFailure):
                return
    frames = sse.flush(parser)
    has_frames = has_frames or bool(frames)
    state, events = _read_frames(wire, state, frames)
    if events:
        yield events
    if has_frames or sse.may_be_event_stream(opening):
        yield wire.finish(state)
    else:
        yield (failure.new_failure("malformed-stream", "The body is no event stream"),)


def _read_frames(
    wire: WireProtocol[State], state: State, frames: list[sse.Frame]
) -> tuple[State, Events]:
    events: list[ProviderEvent] = []
    for frame in frames:
        state, new_events = wire.step(state, frame)
        events += new_events
    return state, join_chunks(events)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


def _transport_failure(error: Exception) -> ProviderFailure:
    match error:
        case sse.FrameTooLarge():
            return failure.new_failure("malformed-stream", str(error))
        case httpx.DecodingError():
            return failure.new_failure("malformed-stream", f"The body cannot be decoded: {error}")
        case httpx.ConnectTimeout():
            return failure.new_failure(
                "timeout", "The provider did not accept a connection in time"
            )
        case httpx.PoolTimeout():
            return failure.new_failure(
                "timeout", "No connection to the provider became free in time"
            )
        case TimeoutError() | httpx.TimeoutException():
            return failure.new_failure("timeout", "The provider sent nothing for too long")
        case httpx.LocalProtocolError() | httpx.UnsupportedProtocol():
            # The library's message may quote the invalid header, and so the key.
            return failure.new_failure("invalid-request", "The request cannot be written as HTTP")
        case _:
            return failure.new_failure("network", f"{type(error).__name__}: {error}")
