"""One stream client of a hub, and the pauses that a crowd of clients needs between two writes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead_gateway.http.sse import FrameQueue, SlowClient

# Between two writes of live frames: the more clients, the longer, so that a write carries more of them.
PAUSE_S_PER_CLIENT: Final = 0.001
PAUSE_S_MAX: Final = 0.05


@dataclass(slots=True, eq=False)
class Member:
    """One client that has joined. `ended` gets the error that ends its stream."""

    frames: FrameQueue
    seq: int
    with_fragments: bool
    ended: "asyncio.Future[None]"

    def offer(self, frame: bytes) -> None:
        """Queue a frame. A client without room is cut off, and delays nobody.

        It gets nothing more, even if it makes room: it would miss what did not fit.
        """
        if self.ended.done():
            return
        try:
            self.frames.offer(frame)
        except SlowClient as slow:
            self.end(slow)

    def end(self, error: BaseException) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


class LiveFrames:
    """Live frames on their way to all clients: at once to a few, joined to a crowd."""

    def __init__(self, deliver: Callable[[bytes], None], count_clients: Callable[[], int]) -> None:
        self._deliver = deliver
        self._count_clients = count_clients
        self._waiting: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flushed_at = 0.0
        self._loop = asyncio.get_running_loop()

    def add(self, frame: bytes) -> None:
        """Deliver at once after a pause, else when the pause is over: a crowd gets fuller frames."""
        self._waiting.append(frame)
        if self._timer is None:
            pause_s = min(self._count_clients() * PAUSE_S_PER_CLIENT, PAUSE_S_MAX)
            self._timer = self._loop.call_at(self._flushed_at + pause_s, self.flush)

    def flush(self) -> None:
        """Deliver what waits, now."""
        self.cancel()
        if not self._waiting:
            return
        self._flushed_at = self._loop.time()
        frame = b"".join(self._waiting)
        self._waiting.clear()
        self._deliver(frame)

    def cancel(self) -> None:
        """End the pause without a delivery."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
