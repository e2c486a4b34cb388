"""Whether another process lives. One look proves no death: the process may be reconnecting."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from fairlead_eventlog.replicas.commit_hint import CommitHint
from fairlead_schema.subjects import Address

# A client tries to reconnect every second, and an attempt may take two. So for this long after our
# own connection came back, processes that live may still be on their way.
RECONNECT_S: Final = 4.0
# How long after the first look the second one comes, while our own connection is an old one.
SECOND_LOOK_S: Final = 0.5

PingResult: TypeAlias = Literal["alive", "gone", "silent"]


class Nudge(NamedTuple):
    """Another process says that a session's log has news, up to a position if it knows one."""

    at: Address
    position: int | None = None
    commit: CommitHint | None = None
    """The commit at that position, if it is small: it spares the reader a read."""


OnNudge: TypeAlias = Callable[[Nudge], None]
"""Runs when a nudge comes."""


class Liveness(Protocol):
    """Which instances are alive. It says when to try a take-over, never whether one is allowed."""

    async def start_answering(self, instance: str, on_nudge: OnNudge = lambda _nudge: None) -> None:
        """Answer pings to this instance from now on, and receive its nudges."""

    async def nudge(
        self,
        instance: str,
        at: Address,
        *,
        position: int | None = None,
        commit: CommitHint | None = None,
    ) -> None:
        """Ask an instance to read a session's log again, up to a position. A nudge may be lost.

        It carries the last commit if the sender has it and the commit is small.
        """

    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        """`gone`: nobody listens under this name. `silent`: the instance listens and does not answer.

        One ping proves nothing: `confirmed_life` looks twice.
        """

    def connected_s(self) -> float:
        """How long our own connection has held since it last came back; infinite if it never broke."""


async def confirmed_life(
    liveness: Liveness,
    instance: str,
    *,
    timeout_s: float,
    second_look_s: float = SECOND_LOOK_S,
    reconnect_s: float = RECONNECT_S,
) -> PingResult:
    """Whether an instance lives, as two looks see it over a connection that held all the time.

    `gone` and `silent` are believed only then. A process that comes back meanwhile is `alive`.
    """
    gone_since: float | None = None
    while True:
        began = monotonic()
        life = await liveness.ping(instance, timeout_s=timeout_s)
        now, connected_s = monotonic(), liveness.connected_s()
        if life == "alive":
            return life
        if life == "silent" and connected_s >= now - began:
            return life
        if life == "silent":
            # Our own connection broke during the ping, so nobody could have answered.
            gone_since = None
        elif gone_since is None or connected_s < now - gone_since:
            gone_since = began
        elif connected_s >= reconnect_s and now - gone_since >= second_look_s:
            return life
        await asyncio.sleep(max(second_look_s, reconnect_s - connected_s))
