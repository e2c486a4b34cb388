"""Follows every shard of the log and the receipts of the intake, and begins again where it stopped."""

import asyncio
from functools import partial
from typing import Final

from fairlead_cli.audit.auditor import Auditor
from fairlead_cli.audit.metrics import LAG
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.grants.services import AUDIT_READER
from fairlead_eventlog.jetstream.streams.shards import BATCH
from fairlead_schema.subjects import SHARDS
from fairlead_service.supervise import Work, describe

WATCH_S: Final = 5.0
RECEIPTS_S: Final = 1.0


class LogFollower:
    """Hands every entry and every receipt to an auditor, in order."""

    def __init__(self, eventlog: EventLog, auditor: Auditor) -> None:
        self._eventlog = eventlog
        self._auditor = auditor
        self._positions = dict.fromkeys(range(SHARDS), 0)
        self._receipts = 0
        self.complaint: str | None = "starting"
        """Why the log cannot be read now, if so."""

    async def begin(self, *, whole: bool) -> None:
        """Begin where an earlier auditor was, else with what comes now. Raises LogError.

        The server knows what it has delivered to an auditor. The last batch may not have been verified.
        """
        if whole:
            return
        for shard in self._positions:
            end = await self._eventlog.shards.last_position(shard)
            known = await self._eventlog.shards.reader_position(shard, AUDIT_READER)
            self._positions[shard] = end if known is None else max(0, min(known, end) - BATCH)
        self._receipts = await self._eventlog.receipts.last_position()

    def parts(self) -> dict[str, Work]:
        """What runs for ever, by name."""
        return {
            **{f"audit of shard {shard}": partial(self.follow, shard) for shard in self._positions},
            "audit of the receipts": self.follow_receipts,
            "lag of the audit": self.measure_lag,
        }

    async def follow(self, shard: int) -> None:
        """Verify the entries of a shard until it cannot be read."""
        after = self._positions[shard]
        async for batch in self._eventlog.shards.follow(shard, after=after, reader=AUDIT_READER):
            for entry in batch:
                await self._auditor.add(entry)
                self._positions[shard] = entry.position

    async def follow_receipts(self) -> None:
        """Hold every receipt of the intake against the log, until it cannot be read."""
        while True:
            receipts = await self._eventlog.receipts.read_after(self._receipts)
            for receipt in receipts:
                await self._auditor.check_receipt(receipt)
                self._receipts = receipt.position
            if not receipts:
                await asyncio.sleep(RECEIPTS_S)

    async def measure_lag(self) -> None:
        """Measure how far the audit is, and say why the log cannot be read."""
        while True:
            try:
                shards = self._eventlog.shards
                ends = [await shards.last_position(shard) for shard in self._positions]
            except LogError as error:
                self.complaint = describe(error)
                raise
            self.complaint = None
            behind = zip(ends, self._positions.values(), strict=True)
            LAG.set(sum(max(0, end - position) for end, position in behind))
            await asyncio.sleep(WATCH_S)
