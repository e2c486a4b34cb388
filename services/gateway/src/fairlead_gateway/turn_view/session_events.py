"""Events of a session for a view in this process: a replay after a cursor, then everything live."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Final, TypeAlias

import orjson

from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.http.sse import FrameQueue
from fairlead_gateway.http.target_session import find_session
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator, read_envelopes
from fairlead_gateway.log.unreadable import find_end, find_start
from fairlead_gateway.routes.events.replay import FollowQuery, open_replay
from fairlead_schema.subjects import Address
from fairlead_service.supervise import cancel_and_wait

Json: TypeAlias = dict[str, Any]

SILENCE_S: Final = 1.0


async def at_session(request: ApiRequest[Any, Any], at: Address) -> ApiRequest[Any, EmptyInput]:
    """The request as one to a session. Raises SessionNotFound."""
    target = await find_session(request.runtime, at)
    return replace(request, body=EmptyInput(), target=target)


async def follow_session(
    request: ApiRequest[Any, Any], at: Address, *, after: int
) -> AsyncGenerator[Json | None, None]:
    """Every visible event after a seq, and fragments. None: nothing is new, or nothing came for a while.

    It uses the hub of the session as every stream does. Raises SlowClient if its reader is too slow.
    """
    inner = replace(await at_session(request, at), query=FollowQuery(after=after))
    settings = request.runtime.settings
    frames = FrameQueue(frames_max=settings.stream_frames_max, bytes_max=settings.stream_bytes_max)
    replay = await open_replay(inner, with_fragments=True)
    replaying: asyncio.Future[None] = asyncio.ensure_future(replay.run(frames))
    taking: asyncio.Future[bytes] = asyncio.ensure_future(frames.take())
    try:
        while True:
            both: set[asyncio.Future[Any]] = {taking, replaying}
            await asyncio.wait(both, timeout=SILENCE_S, return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                for event in _parse(taking.result()):
                    yield event if event is None else await _complete(inner, event)
                taking = asyncio.ensure_future(frames.take())
            elif replaying.done():
                replaying.result()
                return
            else:
                yield None
    finally:
        await cancel_and_wait(replaying, taking)


def _parse(chunk: bytes) -> list[Json | None]:
    """The events of whole frames, in order. A comment says that nothing is new."""
    events: list[Json | None] = []
    for frame in chunk.split(b"\n\n"):
        if not frame:
            continue
        data = [line[6:] for line in frame.split(b"\n") if line.startswith(b"data: ")]
        events.append(orjson.loads(b"\n".join(data)) if data else None)
    return events


async def _complete(request: ApiRequest[Any, EmptyInput], event: Json) -> Json:
    """The whole event, if the stream shows only a part of a long one."""
    if "partial" not in event.get("metadata", {}):
        return event
    runtime, at, seq = request.runtime, request.at, event["durable"]["seq"]
    translator = EnvelopeTranslator(at, runtime.read_model, visible=PUBLIC_AND_NOTICE)
    start, reach = await find_start(request, seq - 1), await find_end(request)
    log = runtime.nats().log
    async for one in read_envelopes(log, at, translator, start=start, after=seq - 1, reach=reach):
        if one.durable is not None and one.durable.seq == seq:
            return one.wire()
    return event
