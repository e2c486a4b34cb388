"""A verb without FastStream: a plain subscription that answers each request in a task of its own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter_ns
from typing import Any, Final, Protocol, TypeAlias

from fairlead_schema.ids import DEFAULT_TENANT, TenantId
from fairlead_schema.model import Model
from fairlead_service.audit import audit_own_client
from fairlead_service.rpc.answers import Answerer, parse_tenant
from fairlead_service.rpc.caller import caller_of
from fairlead_service.rpc.service_api import Endpoint

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 512

Perform: TypeAlias = Callable[[TenantId, Any], Awaitable[Model]]


class Message(Protocol):
    """A request as the NATS client delivers it."""

    subject: str
    reply: str
    data: bytes
    headers: dict[str, str] | None

    async def respond(self, data: bytes) -> None: ...


class Subscription(Protocol):
    """A subscription of the NATS client."""

    async def drain(self) -> None: ...


class ThinVerb:
    """Answers the requests of one verb side by side, up to a limit."""

    def __init__(self, endpoint: Endpoint, answerer: Answerer, perform: Perform) -> None:
        self.endpoint = endpoint
        self._answerer = answerer
        self._perform = perform
        tokens = endpoint.subject.split(".")
        # The command itself names the tenant where the subject has none.
        self._tenant_token = tokens.index("*") if "*" in tokens else None
        self._slots = asyncio.Semaphore(REQUESTS_MAX)
        self._running: set[asyncio.Task[None]] = set()

    async def take(self, message: Message) -> None:
        """Answer in the background. Waits while too many requests are under way."""
        await self._slots.acquire()
        task = asyncio.create_task(self._answer(message))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait until every request that was taken is answered."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _perform_as_caller(self, message: Message, command: Model) -> Model:
        with caller_of(message.subject, message.headers):
            return await self._perform(self._tenant(message), command)

    def _tenant(self, message: Message) -> TenantId:
        if self._tenant_token is None:
            return DEFAULT_TENANT
        return parse_tenant(message.subject.split(".")[self._tenant_token])

    async def _answer(self, message: Message) -> None:
        """Answer one request, and free the slot that `take` got for it."""
        began = perf_counter_ns()
        try:
            answer = await self._answerer.answer(
                self.endpoint.request,
                message.data,
                partial(self._perform_as_caller, message),
            )
            self.endpoint.count(perf_counter_ns() - began, answer.refused)
            audit_own_client(message.subject, answer.refused)
            if message.reply:
                await message.respond(answer.body)
        except Exception:
            # Only the connection can fail here: the caller asks again with the same id.
            log.exception(
                "answer not sent: the caller times out and asks again",
                extra={"subject": message.subject},
            )
        finally:
            self._slots.release()
