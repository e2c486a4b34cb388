"""A verb without FastStream: each request is answered in a task of its own, as soon as it is read."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import perf_counter_ns
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from fairlead_schema.ids import DEFAULT_TENANT, TenantId
from fairlead_schema.model import Model
from fairlead_service.audit import audit_own_client
from fairlead_service.logs import log_with
from fairlead_service.rpc.answers import Answerer, parse_tenant
from fairlead_service.rpc.caller import caller_of, current_caller
from fairlead_service.rpc.service_api import Endpoint
from fairlead_service.rpc.verb_metrics import RequestCount, VerbMetrics
from fairlead_service.traces.tracer import current_span, is_tracing, open_verb_span, span_fields

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 512

Perform: TypeAlias = Callable[[TenantId, Any], Awaitable[Model]]


class ThinHandler(NamedTuple):
    """What a verb without FastStream runs, and what counts its requests."""

    perform: Perform
    counter: RequestCount | None = None


class Message(Protocol):
    """A request as the NATS client delivers it."""

    @property
    def subject(self) -> str: ...
    @property
    def reply(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Subscription(Protocol):
    """A subscription of the NATS client."""

    async def drain(self) -> None: ...


class Connection(Protocol):
    """What a verb needs of the NATS client."""

    async def subscribe_directly(
        self,
        subject: str,
        take: Callable[[Message], bool],
        *,
        queue: str,
        take_later: Callable[[Message], Awaitable[None]],
    ) -> Subscription: ...

    async def send(self, subject: str, body: bytes) -> None: ...


class ThinVerb:
    """Answers the requests of one verb side by side, up to a limit."""

    def __init__(self, endpoint: Endpoint, answerer: Answerer, handler: ThinHandler) -> None:
        self.endpoint = endpoint
        self._perform, self._own_count = handler
        self._answerer = answerer
        self._metrics = VerbMetrics(endpoint.subject)
        tokens = endpoint.subject.split(".")
        # The command itself names the tenant where the subject has none.
        self._tenant_token = tokens.index("*") if "*" in tokens else None
        self._running: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._connection: Connection | None = None

    async def subscribe(self, connection: Connection) -> Subscription:
        """Take requests from now on, each as soon as it is read from the connection."""
        self._connection = connection
        return await connection.subscribe_directly(
            self.endpoint.subject,
            self.try_take,
            queue=self.endpoint.queue,
            take_later=self.take,
        )

    def try_take(self, message: Message) -> bool:
        """Answer in the background, unless too many requests are under way."""
        if len(self._running) >= REQUESTS_MAX:
            return False
        task = asyncio.create_task(self._answer(message))
        self._running.add(task)
        task.add_done_callback(self._end)
        return True

    async def take(self, message: Message) -> None:
        """Answer in the background. Waits while too many requests are under way."""
        while not self.try_take(message):
            self._ended.clear()
            await self._ended.wait()

    async def finish(self) -> None:
        """Wait until every request that was taken is answered."""
        await asyncio.gather(*self._running, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._ended.set()

    async def respond(self, subject: str, headers: Mapping[str, str] | None, body: bytes) -> bytes:
        """Perform one request and count it."""
        began = perf_counter_ns()
        if self._own_count is not None:
            self._own_count.receive()
        with open_verb_span(self.endpoint.verb, headers) as span:
            answer = await self._answerer.answer(
                self.endpoint.request, body, partial(self._perform_as_caller, subject, headers)
            )
            if answer.refused is not None:
                span.fail(answer.refused.tag)
        elapsed_ns = perf_counter_ns() - began
        self.endpoint.count(elapsed_ns, answer.refused)
        self._metrics.count(elapsed_ns, answer.refused)
        if self._own_count is not None:
            self._own_count.answer(answer.refused)
        audit_own_client(subject, answer.refused)
        return answer.body

    async def _perform_as_caller(
        self, subject: str, headers: Mapping[str, str] | None, command: Model
    ) -> Model:
        with caller_of(subject, headers):
            tenant, session_id = self._tenant(subject), getattr(command, "session_id", None)
            with log_with(tenant=tenant, principal=current_caller(), session_id=session_id):
                if is_tracing():
                    current_span().set(span_fields())
                return await self._perform(tenant, command)

    def _tenant(self, subject: str) -> TenantId:
        if self._tenant_token is None:
            return DEFAULT_TENANT
        return parse_tenant(subject.split(".")[self._tenant_token])

    async def _answer(self, message: Message) -> None:
        try:
            body = await self.respond(message.subject, message.headers, message.data)
            if message.reply and self._connection is not None:
                await self._connection.send(message.reply, body)
        except Exception:
            # Only the connection can fail here: the caller asks again with the same id.
            log.exception(
                "answer not sent: the caller times out and asks again",
                extra={"subject": message.subject},
            )
