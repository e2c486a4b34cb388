"""Pings and nudges between instances over core NATS."""

from base64 import b64decode, b64encode
from contextlib import suppress
from typing import Final

from fairlead_eventlog.errors import LogUnavailable, NoResponders
from fairlead_eventlog.jetstream.link import NatsLink, NoAnswer
from fairlead_eventlog.jetstream.thin.frames import InboundMessage
from fairlead_eventlog.ports import StoredCommit
from fairlead_eventlog.process_life import Nudge, OnNudge, PingResult
from fairlead_eventlog.replicas.positions import POSITION_HEADER, parse_position
from fairlead_schema import subjects
from fairlead_schema.record import RecordError, decode, encode
from fairlead_schema.subjects import Address

FLUSH_S: Final = 2.0
COMMIT_HEADER: Final = "Fairlead-Commit"
CARRIED_BYTES_MAX: Final = 4096
"""A nudge carries no larger commit: it is a hint, and the log has the commit anyway."""


class NatsLiveness:
    """Pings over core NATS. The server answers at once that nobody listens: the instance is gone."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link

    async def start_answering(self, instance: str, on_nudge: OnNudge = lambda _nudge: None) -> None:
        def note(msg: InboundMessage) -> None:
            if msg.data:
                tenant, _, session_id = msg.data.decode().partition(" ")
                position = parse_position(msg.headers.get(POSITION_HEADER, ""))
                commit = _parse_commit(position, msg.headers.get(COMMIT_HEADER))
                on_nudge(Nudge(Address(tenant, session_id), position, commit))

        def receive(msg: InboundMessage) -> bool:
            if msg.reply and not self._link.client.try_send(msg.reply, b""):
                return False
            note(msg)
            return True

        async def receive_later(msg: InboundMessage) -> None:
            with suppress(LogUnavailable):
                await self._link.send(msg.reply, b"")
            note(msg)

        await self._link.client.subscribe_directly(
            subjects.ping(instance), receive, take_later=receive_later
        )
        # A ping that overtakes the subscription would find nobody.
        with suppress(LogUnavailable):
            await self._link.flush(timeout_s=FLUSH_S)

    async def nudge(
        self,
        instance: str,
        at: Address,
        *,
        position: int | None = None,
        commit: StoredCommit | None = None,
    ) -> None:
        headers = None if position is None else {POSITION_HEADER: str(position)}
        if commit is not None:
            headers = {POSITION_HEADER: str(commit.position), **_commit_header(commit)}
        body = f"{at.tenant} {at.session_id}".encode()
        with suppress(LogUnavailable):
            await self._link.send(subjects.ping(instance), body, headers=headers)

    async def ping(self, instance: str, *, timeout_s: float) -> PingResult:
        try:
            await self._link.request(subjects.ping(instance), b"", timeout_s=timeout_s)
        except NoResponders:
            return "gone"
        except (NoAnswer, LogUnavailable):
            return "silent"
        return "alive"

    def connected_s(self) -> float:
        return self._link.connected_s


def _commit_header(commit: StoredCommit) -> dict[str, str]:
    """The header that carries a commit. Runners of earlier releases do not look at it."""
    payload = encode(commit.commit)
    if len(payload) > CARRIED_BYTES_MAX:
        return {}
    return {COMMIT_HEADER: b64encode(payload).decode()}


def _parse_commit(position: int | None, carried: str | None) -> StoredCommit | None:
    """The commit that a nudge carries. Its reader reads the log instead if this cannot be read."""
    if position is None or carried is None:
        return None
    try:
        payload = b64decode(carried, validate=True)
        return StoredCommit(position, decode(payload), len(payload))
    except (ValueError, RecordError):
        return None
