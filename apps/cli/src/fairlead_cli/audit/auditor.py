"""Verifies every commit of the live log, in order, session by session."""

import logging
from collections import OrderedDict
from typing import Final

import orjson

from fairlead_cli.audit.log_report import CHANGED
from fairlead_cli.audit.metrics import COMMITS, HELD, RECEIPTS, VIOLATIONS
from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.ports import LogEntry
from fairlead_eventlog.register_ports import StoredReceipt
from fairlead_schema.record import NewerCommit, RecordError, claimed_seq, decode
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import ChecksumState, check_checksum
from fairlead_session.verify.verify import LogReading, Violation

log = logging.getLogger(__name__)

SESSIONS_MAX: Final = 20_000


class Auditor:
    """Reads entries of the log. It holds the sessions that moved last, and reads others again when they move.

    An entry that comes a second time breaks no rule, so a reader may begin again a little earlier.
    """

    def __init__(self, eventlog: EventLog, *, sessions_max: int = SESSIONS_MAX) -> None:
        self._eventlog = eventlog
        self._sessions_max = sessions_max
        self._readings: OrderedDict[Address, _Position] = OrderedDict()

    async def add(self, entry: LogEntry) -> list[Violation]:
        """Verify one entry. Raises LogUnavailable."""
        known = self._readings.get(entry.at)
        if known is None:
            known = self._readings[entry.at] = await self._read_history(entry)
            if len(self._readings) > self._sessions_max:
                self._readings.popitem(last=False)
        self._readings.move_to_end(entry.at)
        violations = [] if entry.position <= known.position else known.read(entry)
        for violation in violations:
            _report(entry.at, violation)
        if known.reading.purged:
            del self._readings[entry.at]
        COMMITS.inc()
        HELD.set(len(self._readings))
        return violations

    async def check_receipt(self, receipt: StoredReceipt) -> list[Violation]:
        """Hold an answer of the intake against the log. Raises LogUnavailable.

        An answer is stored after its commit, so that an admission is in the log before its receipt.
        """
        RECEIPTS.inc()
        if not is_admission(receipt.answer):
            return []
        held = self._readings.get(receipt.at)
        if held is not None and held.reading.inbox.has_met(receipt.message_id):
            return []
        known = _Position()
        async for entry in self._eventlog.shards.session_entries(receipt.at, after=0):
            known.read(entry)
        reading = known.reading
        if reading.purged or reading.stored or reading.inbox.has_met(receipt.message_id):
            return []
        detail = f"{receipt.message_id} has a receipt, and the log has no admission"
        violation = Violation(0, "received", detail)
        _report(receipt.at, violation)
        return [violation]

    async def _read_history(self, entry: LogEntry) -> "_Position":
        """What a session did before an entry. Its violations were reported when they were new."""
        known = _Position()
        if claimed_seq(entry.payload) > 1:
            async for earlier in self._eventlog.shards.session_entries(entry.at, after=0):
                if earlier.position >= entry.position:
                    break
                known.read(earlier)
        return known


class _Position:
    """The rules of one session, and the place up to which they have read."""

    __slots__ = ("position", "reading")

    def __init__(self) -> None:
        self.reading = LogReading()
        self.position = 0

    def read(self, entry: LogEntry) -> list[Violation]:
        self.position = entry.position
        found: list[Violation] = []
        if check_checksum(entry.at, entry.payload) is ChecksumState.WRONG:
            found.append(Violation(claimed_seq(entry.payload), "checksum", CHANGED))
        try:
            events = decode(entry.payload).events
        except NewerCommit:
            # A newer release wrote it. The auditor of that release verifies the session.
            return found
        except RecordError as error:
            return [*found, Violation(0, "readable", str(error))]
        for recorded in events:
            found += self.reading.read(recorded)
        return found


def is_admission(answer: bytes) -> bool:
    """Whether an answer of the intake says that its prompt was admitted."""
    parsed = orjson.loads(answer)
    return isinstance(parsed, dict) and "data" in parsed


def _report(at: Address, violation: Violation) -> None:
    VIOLATIONS.labels(violation.rule).inc()
    log.error(
        "log breaks a rule: run `fairlead verify` for the session, and keep the log",
        extra={
            "tenant": at.tenant,
            "session_id": at.session_id,
            "seq": violation.seq,
            "rule": violation.rule,
            "detail": violation.detail,
        },
    )
