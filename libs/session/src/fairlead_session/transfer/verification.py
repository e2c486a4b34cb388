"""Verifies an export completely, before anything is written, and says what it would bring."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from fairlead_schema.events import (
    PromptAdmitted,
    SessionCreated,
    SessionEvent,
    SessionMoved,
    SessionPurged,
    SessionStored,
    ShellRequested,
    ToolCalled,
)
from fairlead_schema.ids import AttachmentId, MessageId, OutputId, SessionId, TenantId, is_minted
from fairlead_schema.record import (
    NewerCommit,
    Recorded,
    RecordError,
    UnknownEvent,
    decode,
)
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.checksum import ChecksumState, check_checksum
from fairlead_schema.transfer.lines import (
    ExportedCommit,
    ExportEnd,
    ExportHeader,
    ExportItem,
    OutputBegun,
    SessionBegun,
)
from fairlead_session.calls.child_ids import TASK, child_of
from fairlead_session.transfer.errors import ExportFault
from fairlead_session.transfer.events import (
    NAMES_OUTPUT,
    NAMES_SESSION,
    named_outputs,
    named_session,
)
from fairlead_session.transfer.reader import ExportReader, read_items
from fairlead_session.verify.verify import LogReading

_SUMMARISED: Final = NAMES_OUTPUT | {
    SessionCreated,
    SessionMoved,
    PromptAdmitted,
    ShellRequested,
    ToolCalled,
}
# The rules that tell how events follow one another have faults of their own.
_FAULT_OF_RULE: Final[dict[str, ExportFault]] = {"sequence": "Gap", "event-id": "ForeignEventID"}


@dataclass(slots=True)
class SessionSummary:
    """What an export holds of one session."""

    id: SessionId
    parent_id: SessionId | None = None
    directory: str = ""
    """Where the session works at its end."""
    pool: str | None = None
    """The pool whose workers serve it at its end; None for the default pool."""
    seq: int = 0
    bytes: int = 0
    message_ids: list[MessageId] = field(default_factory=list)
    """The ids of callers that it admitted."""
    outputs: dict[OutputId | AttachmentId, int] = field(default_factory=dict)
    children: list[SessionId] = field(default_factory=list)
    """The sessions of its sub-agents, whether or not they were created."""


@dataclass(slots=True)
class ExportSummary:
    """What a whole export holds."""

    header: ExportHeader
    sessions: dict[SessionId, SessionSummary] = field(default_factory=dict)
    digest: str = ""
    """What the last line says of all lines before it. It names this export and no other."""

    @property
    def roots(self) -> list[SessionId]:
        """The sessions whose parent is not in the export."""
        return [id_ for id_, each in self.sessions.items() if each.parent_id not in self.sessions]


class ExportVerification:
    """Checks every item of an export: its events, their rules, and that each belongs where it stands."""

    def __init__(self, reader: ExportReader) -> None:
        self._reader = reader
        self._summary: ExportSummary | None = None
        self._session = SessionSummary("")
        self._rules = LogReading()
        self._event_ids: set[int] = set()
        self._tenant: TenantId = ""

    @property
    def summary(self) -> ExportSummary:
        """What was read so far."""
        assert self._summary is not None, "an export begins with its header"
        return self._summary

    def check(self, item: ExportItem) -> None:
        """Check the next item. Raises ExportError."""
        match item:
            case ExportHeader():
                self._check_header(item)
            case SessionBegun(begin=id_):
                self._session, self._rules = SessionSummary(id_), LogReading()
                self.summary.sessions[id_] = self._session
            case ExportedCommit():
                self._check_commit(item)
            case OutputBegun(output=id_, bytes=size):
                if self._session.outputs.get(id_) != 0:
                    reason = f"no event of {self._session.id} names {id_}, or it stands here twice"
                    raise self._reader.error("OtherAggregate", reason)
                self._session.outputs[id_] = size
            case ExportEnd(digest=digest):
                self.summary.digest = digest
            case _:
                pass

    def _check_header(self, header: ExportHeader) -> None:
        self._summary, self._tenant = ExportSummary(header), header.tenant

    def _check_commit(self, item: ExportedCommit) -> None:
        at = Address(self._tenant, item.session_id)
        if check_checksum(at, item.payload) is ChecksumState.WRONG:
            reason = "a commit is not the one that was written for this session"
            raise self._reader.error("Checksum", reason, seq=self._session.seq + 1)
        try:
            events = decode(item.payload).events
        except RecordError as error:
            raise self._reader.error(
                _fault_of(error), str(error), seq=self._session.seq + 1
            ) from error
        self._reader.count_events(len(events))
        self._session.bytes += len(item.payload)
        digest = sha256(item.payload).digest()
        for recorded in events:
            self._check_event(recorded, digest)

    def _check_event(self, recorded: Recorded, commit_digest: bytes) -> None:
        """Check one event. It repeats an earlier one if its whole commit does."""
        event, session, error = recorded.event, self._session, self._reader.error
        kind = type(event)
        if kind is SessionPurged:
            raise error("Rule", "the session was purged: nothing is left of it", seq=recorded.seq)
        if kind is SessionStored:
            raise error("Rule", "the marker of a stored session is no event of it")
        if kind in NAMES_SESSION and (named := named_session(event)) != session.id:
            raise error("OtherAggregate", f"an event names the session {named}", seq=recorded.seq)
        for violation in self._rules.read(recorded, commit_digest):
            fault = _FAULT_OF_RULE.get(violation.rule, "Rule")
            raise error(fault, f"{violation.rule}: {violation.detail}", seq=recorded.seq)
        if recorded.seq == session.seq + 1:
            # An exact repeat of an earlier commit is not new.
            known = hash(recorded.id)
            if known in self._event_ids:
                reason = f"another session of the export has the event {recorded.id}"
                raise error("ForeignEventID", reason, seq=recorded.seq)
            self._event_ids.add(known)
            session.seq = recorded.seq
            if kind in _SUMMARISED:
                _summarise(session, event)


def _summarise(session: SessionSummary, event: SessionEvent) -> None:
    match event:
        case SessionCreated():
            session.parent_id, session.directory = event.parent_id, event.location.directory
            session.pool = event.pool
        case SessionMoved():
            session.directory, session.pool = event.location.directory, event.pool
        case PromptAdmitted(message_id=id_) | ShellRequested(message_id=id_):
            if not is_minted(id_):
                session.message_ids.append(id_)
        case ToolCalled() if event.tool == TASK:
            child = child_of(session.id, event.assistant_message_id, event.call_id)
            session.children.append(child)
        case _:
            pass
    for output_id in named_outputs(event):
        session.outputs.setdefault(output_id, 0)


def verify_export(lines: Iterable[bytes]) -> ExportSummary:
    """Read and check a whole export. Raises ExportError at the first line that cannot be used."""
    reader = ExportReader()
    verification = ExportVerification(reader)
    for item in read_items(reader, lines):
        verification.check(item)
    return verification.summary


def _fault_of(error: RecordError) -> ExportFault:
    if isinstance(error, UnknownEvent):
        return "UnknownEvent"
    return "Level" if isinstance(error, NewerCommit) else "Malformed"
