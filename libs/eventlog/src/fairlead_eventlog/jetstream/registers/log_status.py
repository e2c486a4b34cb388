"""The status of the log in a key-value bucket, read again every few seconds."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairlead_eventlog.errors import LogError, LogUnavailable, NoResponders, StreamMissing
from fairlead_eventlog.jetstream.link import (
    EXPECTED_LAST,
    WRONG_LAST_SEQUENCE,
    NatsLink,
    NoAnswer,
    ServerRefusal,
    StoredMessage,
    stream_error,
)
from fairlead_eventlog.status.log_status import Incarnation, LogStatus, next_incarnation
from fairlead_eventlog.streams import LOG_STATUS
from fairlead_schema.record import LEVEL_FIRST, LEVEL_NEWEST

log = logging.getLogger(__name__)

READ_EVERY_S: Final = 2.0
_LEVEL: Final = "$KV.fairlead-log.level"
_INCARNATION: Final = "$KV.fairlead-log.incarnation"
_STORED: Final = TypeAdapter(Incarnation)


class JetStreamLogStatus:
    """The status over NATS."""

    def __init__(self, link: NatsLink) -> None:
        self._link = link
        self._current = LogStatus()
        self._on_restore: set[Callable[[], None]] = set()

    @property
    def current(self) -> LogStatus:
        return self._current

    async def read(self) -> LogStatus:
        level, incarnation = await self._load(_LEVEL), await self._load(_INCARNATION)
        try:
            status = LogStatus(
                LEVEL_FIRST if level is None else int(level.payload),
                None if incarnation is None else _STORED.validate_json(incarnation.payload),
            )
        except (ValueError, ValidationError) as error:
            raise LogUnavailable(f"the status of the log cannot be read: {error}") from error
        self._adopt(status)
        return status

    async def finalise(self, level: int) -> None:
        message = await self._load(_LEVEL)
        if message is None or int(message.payload) < level:
            await self._store(
                _LEVEL, str(level).encode(), 0 if message is None else message.sequence
            )
        await self.read()

    async def begin_incarnation(
        self, common: Sequence[int] = (), *, after: Incarnation | None
    ) -> Incarnation:
        message = await self._load(_INCARNATION)
        stored = None if message is None else _STORED.validate_json(message.payload)
        if stored is not None and stored != after:
            return stored
        wanted = next_incarnation(after, common)
        revision = 0 if message is None else message.sequence
        await self._store(_INCARNATION, _STORED.dump_json(wanted), revision)
        message = await self._load(_INCARNATION)
        return wanted if message is None else _STORED.validate_json(message.payload)

    def on_restore(self, notify: Callable[[], None]) -> Callable[[], None]:
        self._on_restore.add(notify)
        return lambda: self._on_restore.discard(notify)

    @asynccontextmanager
    async def keep_reading(self) -> AsyncIterator[None]:
        """Read the status again and again during the block, and at once after a reconnection."""
        reconnected = asyncio.Event()
        unregister = self._link.on_reconnect(reconnected.set)
        reading = asyncio.create_task(self._read_for_ever(reconnected))
        try:
            yield
        finally:
            unregister()
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def _read_for_ever(self, reconnected: asyncio.Event) -> None:
        while True:
            with suppress(LogError):  # The last known status counts until the next read.
                await self.read()
            reconnected.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(READ_EVERY_S):
                    await reconnected.wait()

    async def _load(self, subject: str) -> StoredMessage | None:
        """The value of a key, from the leader; None if nothing is provisioned yet."""
        try:
            return await self._link.last_message(LOG_STATUS.name, subject)
        except StreamMissing:
            return None

    async def _store(self, subject: str, payload: bytes, revision: int) -> None:
        """Store a value, unless another process stores one first."""
        try:
            await self._link.store(subject, payload, headers={EXPECTED_LAST: str(revision)})
        except ServerRefusal as refusal:
            if refusal.code not in WRONG_LAST_SEQUENCE:
                raise stream_error(refusal, LOG_STATUS.name) from refusal
        except (NoAnswer, NoResponders) as error:
            raise LogUnavailable("the status of the log was not stored") from error

    def _adopt(self, status: LogStatus) -> None:
        before, self._current = self._current, status
        if status.level > max(before.level, LEVEL_NEWEST):
            log.warning(
                "log finalised by a newer release: this process leaves sessions alone that it cannot read",
                extra={"level": status.level, "level_newest": LEVEL_NEWEST},
            )
        if before.incarnation is not None and before.incarnation != status.incarnation:
            log.warning("log restored: cursors and checkpoints of the earlier log are void")
            for notify in tuple(self._on_restore):
                notify()
