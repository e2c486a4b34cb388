"""What the servers and the services say about themselves, for the people who run them."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import orjson
from pydantic import ValidationError

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.jetstream.link import NO_STREAM, NatsLink, ServerRefusal, StoredMessage
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.streams import DEAD, STREAMS
from fairlead_schema import subjects
from fairlead_schema.commands.operations import ServiceInstance, ShownDeadLetter, StreamState
from fairlead_schema.dead_letter import DeadLetter
from fairlead_schema.ids import TenantId

SERVICES_S: Final = 0.25
"""Instances that answer later than this are not in the report."""
LOOKED_AT_MAX: Final = 100
TEXT_MAX: Final = 4096
_SERVICES: Final = "$SRV.STATS"


class OperationsReader(Protocol):
    """Reads what an operator wants to see. Every method may raise LogUnavailable."""

    async def streams(self) -> tuple[StreamState, ...]:
        """The declared streams that exist."""

    async def services(self) -> tuple[ServiceInstance, ...]:
        """The instances of services that answer at once."""

    async def dead_letters(self, tenant: TenantId, *, limit: int) -> tuple[ShownDeadLetter, ...]:
        """The newest dead letters of a tenant. Those of others are nobody's business."""


class JetStreamOperations:
    """Asks the servers, and every service that answers there."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def streams(self) -> tuple[StreamState, ...]:
        found = await asyncio.gather(*(self._stream(spec.name) for spec in STREAMS))
        described = {spec.name: spec.description for spec in STREAMS}
        return tuple(
            StreamState(
                name=name,
                description=described[name],
                messages=state["messages"],
                bytes=state["bytes"],
                last_position=state["last_seq"],
                consumers=state["consumer_count"],
            )
            for name, state in found
            if state is not None
        )

    async def services(self) -> tuple[ServiceInstance, ...]:
        answers: list[bytes] = []
        done: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        def receive(message: InboundMessage) -> None:
            answers.append(message.data)

        reply, close = self._link.mux.open_reply_subject(receive, done, 2 * SERVICES_S)
        try:
            await self._link.send(_SERVICES, b"", reply=reply)
            await asyncio.sleep(SERVICES_S)
        finally:
            close()
            done.cancel()
        found = [instance for raw in answers if (instance := _instance(raw)) is not None]
        return tuple(sorted(found, key=lambda instance: (instance.name, instance.id)))

    async def dead_letters(self, tenant: TenantId, *, limit: int) -> tuple[ShownDeadLetter, ...]:
        _, state = await self._stream(DEAD.name)
        if state is None or not state["messages"]:
            return ()
        last, first = state["last_seq"], state["first_seq"]
        letters: list[ShownDeadLetter] = []
        for seq in range(last, max(first, last - LOOKED_AT_MAX) - 1, -1):
            message = await self._link.message_at(DEAD.name, seq)
            letter = None if message is None else _letter(message, tenant)
            if letter is not None:
                letters.append(letter)
            if len(letters) >= limit:
                break
        return tuple(letters)

    async def _stream(self, name: str) -> tuple[str, dict[str, Any] | None]:
        try:
            info = await self._link.api(f"STREAM.INFO.{name}")
        except ServerRefusal as refusal:
            if refusal.code == NO_STREAM:
                return name, None
            raise LogUnavailable(str(refusal)) from refusal
        return name, info["state"]


class MemoryOperations:
    """In memory there are no servers to look at."""

    async def streams(self) -> tuple[StreamState, ...]:
        return ()

    async def services(self) -> tuple[ServiceInstance, ...]:
        return ()

    async def dead_letters(self, tenant: TenantId, *, limit: int) -> tuple[ShownDeadLetter, ...]:  # noqa: ARG002
        return ()


def _instance(raw: bytes) -> ServiceInstance | None:
    try:
        said = orjson.loads(raw)
        started = datetime.fromisoformat(said["started"])
        return ServiceInstance(
            name=said["name"],
            id=said["id"],
            version=said["version"],
            started=int(started.timestamp() * 1000),
            requests=sum(endpoint["num_requests"] for endpoint in said["endpoints"]),
            errors=sum(endpoint["num_errors"] for endpoint in said["endpoints"]),
            pool=_pool(said["endpoints"]),
        )
    except (ValueError, KeyError, TypeError):
        # Anybody may call a service of their own by any name.
        return None


def _pool(endpoints: list[dict[str, Any]]) -> str | None:
    """The pool whose locations a service observes."""
    prefix = subjects.observe("")
    found = (str(endpoint.get("subject")) for endpoint in endpoints)
    return next((name.removeprefix(prefix) for name in found if name.startswith(prefix)), None)


def _letter(message: StoredMessage, tenant: TenantId) -> ShownDeadLetter | None:
    """The letter, if it is of this tenant: its subject names the tenant as a token."""
    try:
        letter = DeadLetter.model_validate_json(message.payload)
    except ValidationError:
        return None
    if tenant not in letter.subject.split("."):
        return None
    return ShownDeadLetter(
        seq=message.sequence,
        time=_stored_at(message),
        subject=letter.subject,
        reason=letter.reason[:TEXT_MAX],
        payload=letter.payload[:TEXT_MAX],
    )


def _stored_at(message: StoredMessage) -> int:
    stamp = message.time_stamp
    when = datetime.fromisoformat(stamp[:26] + "+00:00") if stamp else datetime.now(UTC)
    return int(when.timestamp() * 1000)
