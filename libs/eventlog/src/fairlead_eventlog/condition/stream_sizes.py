"""How full the streams are."""

from typing import Final, NamedTuple, Protocol

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NO_STREAM, NatsLink, ServerRefusal
from fairlead_eventlog.streams import STREAMS


class StreamSize(NamedTuple):
    """The bytes of one stream, and how many it may have; zero means no limit."""

    stream: str
    bytes: int
    bytes_max: int

    @property
    def share(self) -> float:
        """The used part of the limit; zero without a limit."""
        return self.bytes / self.bytes_max if self.bytes_max else 0.0


ALARM_SHARE: Final = 0.8
"""So much of a limit may be used before somebody is told."""


class StreamSizes(Protocol):
    """Reads the sizes of all streams."""

    async def read_all(self) -> tuple[StreamSize, ...]:
        """The sizes of the declared streams that exist. Raises LogUnavailable."""


class JetStreamStreamSizes:
    """The sizes as the servers count them."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def read_all(self) -> tuple[StreamSize, ...]:
        found = [await read_size(self._link, spec.name) for spec in STREAMS]
        return tuple(size for size in found if size is not None)


class MemoryStreamSizes:
    """In memory nothing is ever full."""

    async def read_all(self) -> tuple[StreamSize, ...]:
        return ()


async def read_size(link: NatsLink, stream: str) -> StreamSize | None:
    """The size of a stream; None if it does not exist. Raises LogUnavailable."""
    try:
        info = await link.api(f"STREAM.INFO.{stream}")
    except ServerRefusal as refusal:
        if refusal.code == NO_STREAM:
            return None
        raise LogUnavailable(str(refusal)) from refusal
    limit = int(info["config"].get("max_bytes", 0))
    return StreamSize(stream, int(info["state"]["bytes"]), max(limit, 0))
