"""How long work has waited in its queue before anybody took it: the reason to start more processes."""

import time
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from fairlead_eventlog.errors import LogUnavailable
from fairlead_eventlog.grants.granted_names import QUEUES
from fairlead_eventlog.jetstream.link import NO_MESSAGE, NO_STREAM, NatsLink, ServerRefusal
from fairlead_eventlog.streams import PROMPTS

INTAKE: Final = "ingest"


class QueueAge(NamedTuple):
    """The messages of one consumer that nobody has taken yet. An empty queue has the age zero."""

    stream: str
    consumer: str
    waiting: int
    oldest_age_s: float


class WaitingWork(Protocol):
    """Reads the queues of prompts, wakes and tool requests."""

    async def read_all(self) -> tuple[QueueAge, ...]:
        """One entry for each consumer of the queues. Raises LogUnavailable."""


class JetStreamWaitingWork:
    """The queues as the servers count them."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def read_all(self) -> tuple[QueueAge, ...]:
        ages = await self._read_intake()
        for stream in QUEUES:
            try:
                listed = await self._link.api(f"CONSUMER.LIST.{stream}")
            except ServerRefusal as refusal:
                if refusal.code == NO_STREAM:
                    continue
                raise LogUnavailable(str(refusal)) from refusal
            ages += [await self._read(stream, info) for info in listed.get("consumers") or ()]
        return tuple(ages)

    async def _read_intake(self) -> list[QueueAge]:
        """The prompts. Ingest takes one for a moment only, so the first of the stream has waited longest."""
        try:
            state = (await self._link.api(f"STREAM.INFO.{PROMPTS.name}"))["state"]
        except ServerRefusal as refusal:
            if refusal.code == NO_STREAM:
                return []
            raise LogUnavailable(str(refusal)) from refusal
        waiting = int(state["messages"])
        age_s = max(0.0, time.time() - parse_time(state["first_ts"])) if waiting else 0.0
        return [QueueAge(PROMPTS.name, INTAKE, waiting, age_s)]

    async def _read(self, stream: str, info: dict[str, Any]) -> QueueAge:
        waiting = int(info["num_pending"])
        if not waiting:
            return QueueAge(stream, info["name"], 0, 0.0)
        query = {
            "seq": int(info["delivered"]["stream_seq"]) + 1,
            "next_by_subj": info["config"].get("filter_subject") or ">",
        }
        try:
            answer = await self._link.api(f"STREAM.MSG.GET.{stream}", query)
        except ServerRefusal as refusal:
            if refusal.code == NO_MESSAGE:
                # Somebody took the last message meanwhile.
                return QueueAge(stream, info["name"], 0, 0.0)
            raise LogUnavailable(str(refusal)) from refusal
        stored_at = parse_time(answer["message"]["time"])
        return QueueAge(stream, info["name"], waiting, max(0.0, time.time() - stored_at))


class MemoryWaitingWork:
    """In memory nobody watches the queues."""

    async def read_all(self) -> tuple[QueueAge, ...]:
        return ()


def parse_time(text: str) -> float:
    """The seconds since 1970 of a server's time, which has nanoseconds and ends with a Z."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    digits = fraction.rstrip("0")[:6] or "0"
    return datetime.fromisoformat(f"{whole}.{digits:0<6}+00:00").timestamp()
