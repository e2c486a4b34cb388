"""A server for request and reply over NATS: typed FastStream handlers, documented as AsyncAPI.

FastStream costs more processor time than an admission does (docs/adr/0022), so that the verbs of
every turn have a thin path on the same connection, with the same answers and metrics.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Annotated, Any, Final, TypeAlias, TypeGuard, cast, get_type_hints

from fast_depends.pydantic import PydanticSerializer
from faststream import Path
from faststream.nats import NatsBroker, NatsMessage
from faststream.specification import AsyncAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import override

from fairlead_schema import subjects
from fairlead_schema.identity.verbs import VERBS
from fairlead_schema.ids import TenantId
from fairlead_schema.model import Model
from fairlead_service.rpc.answers import PRINCIPAL, TENANT, Answerer, Refusals, parse_json
from fairlead_service.rpc.local_doors import LocalDoor, LocalDoors, respond_by_faststream
from fairlead_service.rpc.middleware import AnswerMiddleware, metrics_middleware
from fairlead_service.rpc.service_api import Endpoint, ServiceApi
from fairlead_service.rpc.thin_path import (
    REQUESTS_MAX,
    Message,
    Perform,
    Subscription,
    ThinHandler,
    ThinVerb,
)
from fairlead_service.rpc.verb_metrics import RequestCount
from fairlead_service.supervise import describe

log = logging.getLogger(__name__)

STOP_S: Final = 30.0
DRAIN_S: Final = 2
DOCUMENTED_SERVER: Final = "nats://nats:4222"
"""The AsyncAPI document names no real address: an address may hold secrets."""
HEADER_BYTES: Final = 1024
"""Room for the headers that FastStream adds to an answer."""
ANY_TENANT: Final = f"{{{TENANT}}}"
"""Stands for the tenant in the subject of a verb."""
ANY_PRINCIPAL: Final = f"{{{PRINCIPAL}}}"
"""Stands for the principal in the subject of a verb that a tenant's client calls."""

Handler: TypeAlias = Callable[..., Awaitable[Model]]
"""A FastStream handler: one parameter is the command, others are annotated with Path or Context."""
TenantParam: TypeAlias = Annotated[TenantId, Path()]
"""The tenant of a request, from its subject."""
OpenClient: TypeAlias = Callable[..., Awaitable[Any]]
"""Connects a client of NATS that takes `name`; `open_client` of the event log with its address."""


class _Broker(NatsBroker):
    """A broker on a client that someone else makes, because that one knows keys and certificates."""

    open_client: Callable[[], Awaitable[Any]]

    @override
    async def _connect(self) -> Any:
        connection = await self.open_client()
        self.config.connect(connection)
        return connection


class RpcServer:
    """Serves verbs on one connection that reconnects for ever; it connects when started.

    Instances of one name share the requests. Requests of a verb are answered side by side. With
    `local`, other parts of this process ask without NATS.
    """

    def __init__(
        self,
        open_client: OpenClient,
        *,
        name: str,
        refusals: Refusals | None = None,
        local: LocalDoors | None = None,
    ) -> None:
        self.api = ServiceApi(f"fairlead-{name}", f"Fairlead {name}")
        self._queue = name
        self._answerer = Answerer(refusals or {})
        self._endpoints: dict[object, Endpoint] = {}
        self._thin_verbs: list[ThinVerb] = []
        self._subscriptions: list[Subscription] = []
        self._local = local
        self._local_doors: list[LocalDoor] = []
        self._close_local: list[Callable[[], Awaitable[None]]] = []
        self._broker = _Broker(
            DOCUMENTED_SERVER,
            decoder=_decode,
            # Its own kind of error tells a wrong parameter from a defect inside a handler.
            serializer=PydanticSerializer(use_fastdepends_errors=True),
            middlewares=(
                partial(AnswerMiddleware, answerer=self._answerer, endpoints=self._endpoints),
                metrics_middleware(),
            ),
            graceful_timeout=STOP_S,
            drain_timeout=DRAIN_S,
            logger=None,
        )
        self._broker.open_client = partial(open_client, name=f"fairlead-{name}-rpc")
        # Never started: it holds the handlers of thin verbs for the AsyncAPI document.
        self._documented = NatsBroker(DOCUMENTED_SERVER)

    def serve_verb(
        self,
        verb: str,
        handler: Handler,
        perform: Perform | None = None,
        count: RequestCount | None = None,
    ) -> None:
        """Serve a verb of the table for services, and for tenants' own clients if it has a scope.

        With `perform` the verb is served without FastStream, and `count` counts its requests.
        """
        doors = {verb: subjects.api(ANY_TENANT, verb)}
        if VERBS[verb].scope is not None:
            doors[f"as.{verb}"] = subjects.as_principal(ANY_TENANT, ANY_PRINCIPAL, verb)
        thin = None if perform is None else ThinHandler(perform, count)
        for title, subject in doors.items():
            self._serve_door(title, subject, handler, thin, queue=self._queue)
        if VERBS[verb].repeatable:
            # Without a queue every instance answers, so that one that stands still is no loss.
            every = subjects.every_server(ANY_TENANT, verb)
            self._serve_door(f"every.{verb}", every, handler, thin, queue="")

    def serve(self, verb: str, subject: str, handler: Handler) -> None:
        """Serve one verb by a FastStream handler. The subject may hold `ANY_TENANT`."""
        self._serve_door(verb, subject, handler, None, queue=self._queue)

    def serve_thin(
        self, verb: str, subject: str, handler: Handler, perform: Perform | None = None
    ) -> None:
        """Serve one verb without FastStream. The handler is only documented; `perform` runs.

        Where the command names its tenant itself, a handler of the command alone runs.
        """
        perform = perform or (lambda _tenant, command: handler(command))
        self._serve_door(verb, subject, handler, ThinHandler(perform), queue=self._queue)

    def _serve_door(
        self, title: str, subject: str, handler: Handler, thin: ThinHandler | None, *, queue: str
    ) -> None:
        """Serve a verb on one subject. Instances share the requests if they have a queue."""
        endpoint = self._endpoint(title, subject, handler, queue)
        if thin is None:
            subscriber = self._broker.subscriber(
                subject, queue, title=title, max_workers=REQUESTS_MAX
            )
            subscriber(handler)
            self._endpoints[subscriber] = endpoint
            respond = respond_by_faststream(subscriber.process_message)
        else:
            self._documented.subscriber(subject, queue, title=title)(handler)
            verb = ThinVerb(endpoint, self._answerer, thin)
            self._thin_verbs.append(verb)
            respond = verb.respond
        self._local_doors.append(LocalDoor(endpoint.subject, respond))

    def provide(self, name: str, dependency: object) -> None:
        """Give handlers a dependency that they name with `Context(name)`."""
        self._broker.context.set_global(name, dependency)

    def asyncapi_route(self, title: str) -> Route:
        """Serves the AsyncAPI document of all verbs. To make it takes long, so the first reader waits."""

        @cache
        def write_document() -> str:
            specification = AsyncAPI(self._broker, self._documented, title=title, version="1")
            return specification.to_specification().to_json()

        async def show(_request: Request) -> Response:
            # In a thread: requests go on meanwhile.
            document = await asyncio.to_thread(write_document)
            return Response(document, media_type="application/json")

        return Route("/asyncapi.json", show)

    async def start(self) -> None:
        """Connect and serve."""
        self._connection = await self._broker.connect()
        self._answerer.bytes_max = self._connection.max_payload - HEADER_BYTES
        for subject, answer in self.api.answers():
            await self._connection.subscribe(subject, cb=partial(self._describe, answer))
        connection = cast("Any", self._connection)  # The broker knows less of it than we do.
        self._subscriptions = [await verb.subscribe(connection) for verb in self._thin_verbs]
        await self._broker.start()
        # A ping of nats-py overtakes the subscriptions that it has not written yet: the second one
        # comes back when NATS knows every subscription.
        for _ in range(2):
            await self._connection.flush()
        if self._local is not None:
            self._close_local = [
                self._local.serve(door.pattern, door.respond) for door in self._local_doors
            ]

    async def stop(self) -> None:
        """Take no more requests, answer those that were taken, then disconnect."""
        await asyncio.gather(*(close() for close in self._close_local))
        for subscription in self._subscriptions:
            await _unless_lost(asyncio.wait_for(subscription.drain(), DRAIN_S))
        for verb in self._thin_verbs:
            await verb.finish()
        await _unless_lost(self._broker.stop())
        if not self._connection.is_closed:
            await self._connection.close()

    async def _describe(self, answer: Callable[[], bytes], message: Message) -> None:
        await self._connection.publish(message.reply, answer())

    def _endpoint(self, verb: str, subject: str, handler: Handler, queue: str) -> Endpoint:
        request, response = _models(handler)
        pattern = subject.replace(ANY_TENANT, "*").replace(ANY_PRINCIPAL, "*")
        endpoint = Endpoint(verb, pattern, queue, request, response)
        self.api.endpoints.append(endpoint)
        return endpoint


def _models(handler: Handler) -> tuple[type[Model], type[Model]]:
    """The models of a handler's command and of its answer."""
    hints = get_type_hints(handler)
    answer = hints.pop("return")
    (command,) = (hint for hint in hints.values() if _is_model(hint))
    assert _is_model(answer), f"{handler} answers with a model"
    return command, answer


def _is_model(hint: object) -> TypeGuard[type[Model]]:
    return isinstance(hint, type) and issubclass(hint, Model)


async def _unless_lost(step: Awaitable[object]) -> None:
    """Take one step of a stop. Without a server it fails, and there is nobody left to answer."""
    try:
        await step
    except Exception as error:  # noqa: BLE001 - the client has many errors for a lost server
        log.warning("request server did not stop cleanly", extra={"reason": describe(error)})


async def _decode(message: NatsMessage) -> object:
    """Read JSON whatever the content type says: NATS clients send none."""
    return parse_json(message.body)
