"""One stream of a terminal client, and the frames that it gets."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson

from fairlead_gateway.http.sse import FrameQueue
from fairlead_gateway.live.member import Member
from fairlead_service.ids import event_id

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True, eq=False)
class ViewClient:
    """One stream: of everything in envelopes, or of one directory without them."""

    frames: FrameQueue
    ended: "asyncio.Future[None]"
    is_global: bool
    directory: str | None = None
    member: Member = field(init=False)

    def __post_init__(self) -> None:
        self.member = Member(self.frames, 0, with_fragments=True, ended=self.ended)

    def sees(self, directory: str) -> bool:
        return self.is_global or self.directory in {None, directory}


def encode_frames(events: Iterable[Json], directory: str | None, *, is_global: bool) -> bytes:
    """Events as frames. Clients of one kind share the bytes."""
    return b"".join(_frame(one, directory, is_global=is_global) for one in events)


def _frame(one: Json, directory: str | None, *, is_global: bool) -> bytes:
    body: Json = {"id": event_id(), **one}
    if is_global:
        body = {"payload": body} if directory is None else {"directory": directory, "payload": body}
    return b"data: %s\n\n" % orjson.dumps(body)
