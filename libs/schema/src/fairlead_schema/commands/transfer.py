"""Commands that move sessions between deployments: checks, replayed events, outputs, claims, pages."""

from typing import Annotated, Any, Final

from pydantic import Base64Bytes, Field, StringConstraints

from fairlead_schema.commands.session import SessionCommand
from fairlead_schema.ids import AttachmentId, MessageId, OutputId, SessionId
from fairlead_schema.model import InputModel, Model
from fairlead_schema.session_values.stored_file import FileDigest, StoredFile
from fairlead_schema.tools.pool_rules import PoolName

OriginName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/@-]{1,128}$")]
"""Who replays into a session, such as a deployment. Only that origin may add to the session."""
BATCH_COMMITS_MAX: Final = 2_000
CHECKED_SESSIONS_MAX: Final = 100
CHECKED_IDS_MAX: Final = 5_000
PAGE_COMMITS_MAX: Final = 500
DIGEST_PATTERN: Final = r"^[0-9a-f]{64}$"


class TransferredSession(InputModel):
    """One session of an import, as far as a check needs it."""

    session_id: SessionId
    through: Annotated[int, Field(ge=1, lt=2**53)]
    """The seq of the last event that the import brings."""
    directory: Annotated[str, StringConstraints(max_length=4096)]
    pool: PoolName | None = None
    """The pool that its log names at the end. Absent means the default pool."""
    message_ids: Annotated[
        tuple[MessageId, ...], Field(alias="messageIDs", max_length=CHECKED_IDS_MAX)
    ] = ()


class TransferAmounts(InputModel):
    """What an import adds to the totals of its tenant."""

    sessions: Annotated[int, Field(ge=0)] = 0
    log_bytes: Annotated[int, Field(ge=0)] = 0
    output_bytes: Annotated[int, Field(ge=0)] = 0


class StoreSession(SessionCommand):
    """`session.store`: a file holds all events of the session, so that they leave the log."""

    file: StoredFile


class CheckTransfer(InputModel):
    """`transfer.check`: whether sessions may be imported. Nothing is written."""

    sessions: Annotated[tuple[TransferredSession, ...], Field(max_length=CHECKED_SESSIONS_MAX)] = ()
    origin: OriginName | None = None
    strict: bool = False
    adds: TransferAmounts | None = None
    restores: FileDigest | None = None
    """The digest of the file, if it restores stored sessions. Each of their markers must name it."""


class CheckedSession(Model):
    """A session that may be imported, and how much of it is here already."""

    session_id: SessionId
    seq: int
    skipped: bool = False
    """Another origin replays into the session: an import that is not strict leaves it alone."""


class TransferChecked(Model):
    """The sessions of a check, in its order."""

    sessions: tuple[CheckedSession, ...]


class ReplayEvents(SessionCommand):
    """`transfer.replay`: commits of one session, in order. Exact repeats of events change nothing."""

    commits: Annotated[list[dict[str, Any]], Field(max_length=BATCH_COMMITS_MAX)]
    """As the log stores them. Only their events and the callers of these count."""
    through: Annotated[int, Field(ge=1, lt=2**53)]
    """The seq of the last event that the import brings. Before it the session does not run."""
    origin: OriginName | None = None
    strict: bool = False
    publish: bool = False
    """Whether the public feed gets the new events."""
    check: bool = False
    """Judge the events and write nothing."""
    restores: FileDigest | None = None
    """The digest of the file, if it restores a stored session. The marker of the session must name it."""


class EventsReplayed(Model):
    """How far a session is after a batch, and how many events of the batch were or would be new."""

    session_id: SessionId
    seq: int
    accepted: int
    skipped: bool = False


class StoreOutput(SessionCommand):
    """`transfer.output`: one part of an output or an attachment. The last part has the digest of the whole."""

    id: OutputId | AttachmentId
    upload: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,32}$")]
    """Tells the parts of one try from those of another."""
    part: Annotated[int, Field(ge=0)]
    first_bytes: Annotated[int, Field(ge=0)]
    """The length of the first part."""
    data: Base64Bytes = b""
    mime: Annotated[str, StringConstraints(max_length=256)] | None = None
    bytes: Annotated[int, Field(ge=0)] | None = None
    digest: Annotated[str, StringConstraints(pattern=DIGEST_PATTERN)] | None = None


class UploadPart(StoreOutput):
    """`session.upload`: one part of a file that a caller uploads for a later prompt."""

    id: AttachmentId
    total: Annotated[int, Field(ge=0)]
    """The size of the whole file. Every part names it."""


class OutputStored(Model):
    """Whether the output can be read now."""

    id: OutputId | AttachmentId
    complete: bool


class ClaimOrigin(SessionCommand):
    """`transfer.claim`: only this origin may replay into the session from here on."""

    origin: OriginName


class OriginClaimed(Model):
    """The origin of a session."""

    session_id: SessionId
    origin: str


class ReadCommits(SessionCommand):
    """`transfer.page`: commits of a session as the log stores them, after a position."""

    after: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=PAGE_COMMITS_MAX)] = PAGE_COMMITS_MAX


class CommitsRead(Model):
    """Commits as text, byte for byte, and the position to read on from; without it there is no more."""

    session_id: SessionId
    commits: tuple[str, ...]
    next: int | None = None
    outputs: tuple[OutputId | AttachmentId, ...] = ()
    """The managed outputs and attachments that these commits name."""
    children: tuple[SessionId, ...] = ()
    """The sessions of sub-agents that these commits began."""
    log: str | None = None
    """The incarnation of the log."""


class ReadOutputPart(SessionCommand):
    """`transfer.read`: some bytes of an output or an attachment that the session names."""

    id: OutputId | AttachmentId
    first: Annotated[int, Field(ge=0, lt=2**53)] = 0


class OutputRead(Model):
    """Some bytes, and how many there are in all. An output that expired has no type."""

    id: OutputId | AttachmentId
    mime: str | None = None
    bytes: int = 0
    data: Base64Bytes = b""
