"""Request and reply between the parts of one process: a request finds its responder before it goes to NATS.

Bytes in, bytes out: a responder gets what NATS would deliver, in a task of its own and in the context in
which it began to serve. A caller that gives up does not stop it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.grants.permissions import Permissions
from fairlead_eventlog.grants.services import ServiceIdentity, service_grants

log = logging.getLogger(__name__)

ANY: Final = "*"
REST: Final = ">"

Respond: TypeAlias = Callable[[str, Mapping[str, str] | None, bytes], Awaitable[bytes]]
"""Answers a request: its subject, its headers, its body."""


@dataclass(eq=False, slots=True)
class LocalResponder:
    """One responder and the requests that it answers now."""

    pattern: str
    respond: Respond
    context: Context = field(default_factory=copy_context)
    running: set[asyncio.Task[bytes]] = field(default_factory=set)

    async def answer(self, subject: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        """One answer. Raises LogUnavailable if the responder fails without one."""
        task = asyncio.get_running_loop().create_task(
            self._answer(subject, headers, body), context=self.context.copy()
        )
        self.running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait until every request that was taken is answered."""
        await asyncio.gather(*self.running, return_exceptions=True)

    async def _answer(self, subject: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        try:
            return await self.respond(subject, headers, body)
        except Exception as error:
            log.exception(
                "answer not given: the caller asks again if it can", extra={"subject": subject}
            )
            raise LogUnavailable(f"{subject} was not answered") from error

    def _forget(self, task: asyncio.Task[bytes]) -> None:
        self.running.discard(task)
        # Nobody may be left to read the failure, which was logged.
        if not task.cancelled():
            task.exception()


class LocalResponders:
    """The responders of all parts of one process."""

    def __init__(self) -> None:
        self._by_pattern: dict[str, LocalResponder] = {}
        self._shapes: set[tuple[int, ...]] = set()
        """Where the patterns have `*`. There are few shapes and many patterns."""

    def requests_of(self, identity: ServiceIdentity) -> "LocalRequests":
        """The requests of one part, with the grants that its identity has on NATS."""
        return LocalRequests(self, service_grants(identity))

    def add(self, responder: LocalResponder) -> None:
        tokens = responder.pattern.split(".")
        assert REST not in tokens, "a verb has a subject of a fixed length"
        self._shapes.add(tuple(at for at, token in enumerate(tokens) if token == ANY))
        self._by_pattern[responder.pattern] = responder

    def remove(self, responder: LocalResponder) -> None:
        if self._by_pattern.get(responder.pattern) is responder:
            del self._by_pattern[responder.pattern]

    def find(self, subject: str) -> LocalResponder | None:
        """Who answers a subject in this process, if anybody does."""
        tokens = subject.split(".")
        for shape in self._shapes:
            if shape and shape[-1] >= len(tokens):
                continue
            pattern = ".".join(ANY if at in shape else token for at, token in enumerate(tokens))
            if (responder := self._by_pattern.get(pattern)) is not None:
                return responder
        return None


class LocalRequests:
    """What one part of a process may serve and ask without NATS."""

    def __init__(self, responders: LocalResponders, grants: Permissions) -> None:
        self._responders = responders
        self._grants = grants
        self._may_ask: dict[str, bool] = {}
        """By pattern of a responder, of which a process has a fixed number."""

    def serve(self, pattern: str, respond: Respond) -> Callable[[], Awaitable[None]]:
        """Answer the requests of this process. The returned function ends that, and finishes them."""
        assert _is_granted(self._grants.subscribe, pattern), f"no grant to serve {pattern}"
        responder = LocalResponder(pattern, respond)
        self._responders.add(responder)

        async def stop() -> None:
            self._responders.remove(responder)
            await responder.finish()

        return stop

    def find(self, subject: str) -> LocalResponder | None:
        """Who answers here. What NATS would refuse to this identity goes to NATS, and is refused."""
        responder = self._responders.find(subject)
        if responder is None:
            return None
        may = self._may_ask.get(responder.pattern)
        if may is None:
            may = _is_granted(self._grants.publish, responder.pattern)
            self._may_ask[responder.pattern] = may
        return responder if may else None


def _is_granted(grants: tuple[str, ...], pattern: str) -> bool:
    """Whether one of the granted subjects covers the whole pattern."""
    return any(_covers(grant.split("."), pattern.split(".")) for grant in grants)


def _covers(grant: list[str], pattern: list[str]) -> bool:
    for at, token in enumerate(grant):
        if token == REST:
            return len(pattern) > at
        if at >= len(pattern) or token not in {ANY, pattern[at]}:
            return False
    return len(grant) == len(pattern)
