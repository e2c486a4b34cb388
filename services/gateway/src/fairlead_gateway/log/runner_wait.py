"""Waits until a runner has served a request that a command wrote into the log."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.session_state import load_session, wait_until
from fairlead_schema.errors import ServiceUnavailable
from fairlead_session.state.session import Session

WAIT_S: Final = 60.0


class RequestReached(Protocol):
    """The answer of the command: the session's last seq, and that of the request."""

    @property
    def seq(self) -> int: ...
    @property
    def request(self) -> int | None: ...


class OpenRequest(Protocol):
    """A request that no runner has served yet."""

    @property
    def seq(self) -> int: ...


async def wait_for_runner(
    request: ApiRequest[Any, Any],
    reached: RequestReached,
    open_request: Callable[[Session], OpenRequest | None],
    *,
    act: str,
) -> Session:
    """The session after its runner has served the request. Raises ServiceUnavailable."""

    def is_served(session: Session) -> bool:
        waiting = open_request(session)
        served = waiting is None or waiting.seq != reached.request
        return session.seq >= reached.seq and served

    if not await wait_until(request.runtime, request.at, is_served, timeout_s=WAIT_S):
        text = f"The {act} is not done after {WAIT_S:g} s and goes on: read the session later"
        raise ServiceUnavailable(text, service=f"session.{act}")
    return await load_session(request.runtime, request.at)
