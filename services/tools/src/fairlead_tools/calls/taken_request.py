"""A request that a worker has taken, and what it led to."""

from dataclasses import dataclass
from typing import Self

from fairlead_eventlog.ports import Job
from fairlead_eventlog.session_writer import AssumedState
from fairlead_session.state.session import Session
from fairlead_tools.calls.execution import Stop
from fairlead_tools.calls.run import Run


@dataclass(slots=True)
class Held:
    """A request in this worker's hands, and the run it led to."""

    job: Job
    run: Run | None = None
    begun: AssumedState[Session] | None = None
    """The session as the start left it: what settles the call is first tried on top of that."""

    def stop(self, why: Stop) -> None:
        if self.run is not None:
            self.run.stop(why)


@dataclass(frozen=True, slots=True)
class Unheld:
    """No request is in hand: there is nothing to keep, to finish or to put back."""

    subject: str = ""
    payload: bytes = b""
    sequence: int = 0
    deliveries: int = 1

    async def extend(self) -> None: ...

    async def ack(self) -> None: ...

    async def retry_later(self, delay_s: float) -> None: ...

    def release(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None: ...
