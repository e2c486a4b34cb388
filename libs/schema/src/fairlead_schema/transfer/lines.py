"""The lines of an export: JSON, one per line, each kind with its first key (docs/contracts.md).

A running SHA-256 over all lines so far stands at the end of each session and at the end of the file.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field
from pydantic_core import from_json, to_json

from fairlead_schema.identity.principal import PrincipalName
from fairlead_schema.ids import AttachmentId, OutputId, SessionId, TenantId
from fairlead_schema.model import Model

FORMAT: Final = 1
"""The version of the file. A reader refuses a newer one."""
LINE_BYTES_MAX: Final = 12 * 1024 * 1024
"""The log has no commit that is longer, in base64 too."""
CHUNK_BYTES: Final = 384 * 1024
"""The bytes of a managed output in one line."""

ExportScope: TypeAlias = Literal["session", "tree", "tenant"]

COMMIT: Final = re.compile(rb'\{"of":"(ses[A-Za-z0-9_-]{1,120})","commit":(.*)\}', re.DOTALL)


class ExportHeader(Model):
    """The first line: what was exported, from where, when and by whom."""

    fairlead: Literal["export"] = "export"
    format: int = Field(default=FORMAT, ge=1)
    level: int = Field(ge=1)
    """The newest level of the log's format that the exporting release knew."""
    release: str
    scope: ExportScope
    tenant: TenantId
    incarnation: str | None = None
    by: PrincipalName | None = None
    at: int


class SessionBegun(Model):
    """The commits of a session follow."""

    begin: SessionId


class OutputBegun(Model):
    """A managed output or a stored attachment of the session follows, in chunks."""

    output: OutputId | AttachmentId
    mime: str
    bytes: int = Field(ge=0)


class SessionSealed(Model):
    """A session is complete: how much it holds, and the digest of all lines before this one."""

    sealed: SessionId
    commits: int
    events: int
    outputs: int
    digest: str


class ExportTotals(Model):
    """How much a file holds."""

    sessions: int = 0
    commits: int = 0
    events: int = 0
    outputs: int = 0

    def plus(self, sealed: SessionSealed) -> "ExportTotals":
        return ExportTotals(
            sessions=self.sessions + 1,
            commits=self.commits + sealed.commits,
            events=self.events + sealed.events,
            outputs=self.outputs + sealed.outputs,
        )


class ExportEnd(Model):
    """The last line."""

    end: ExportTotals
    digest: str


@dataclass(frozen=True, slots=True)
class ExportedCommit:
    """The bytes of one commit of a session."""

    session_id: SessionId
    payload: bytes


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """Some bytes of the output that began last."""

    data: bytes


ExportItem: TypeAlias = (
    ExportHeader
    | SessionBegun
    | ExportedCommit
    | OutputBegun
    | OutputChunk
    | SessionSealed
    | ExportEnd
)


class ExportLines:
    """Writes the lines of one export, in order, with their digests."""

    def __init__(self, header: ExportHeader) -> None:
        self._digest = sha256()
        self._session: SessionId = ""
        self._commits = self._events = self._outputs = 0
        self._totals = ExportTotals()
        self.first = self._line(to_json(header.wire()))

    def begin(self, session_id: SessionId) -> bytes:
        """The line before the commits of a session."""
        self._session = session_id
        self._commits = self._events = self._outputs = 0
        return self._line(to_json({"begin": session_id}))

    def commit(self, payload: bytes) -> bytes:
        """The line of a commit, byte for byte. What is no JSON stands there in base64."""
        events = _events_of(payload)
        self._commits += 1
        self._events += events or 0
        of = b'{"of":"%s",' % self._session.encode()
        if events is None:
            return self._line(of + b'"raw":"%s"}' % b64encode(payload))
        return self._line(of + b'"commit":%s}' % payload)

    def output(self, output_id: OutputId | AttachmentId, mime: str, size: int) -> bytes:
        """The line before the chunks of a managed output."""
        self._outputs += 1
        return self._line(to_json({"output": output_id, "mime": mime, "bytes": size}))

    def chunk(self, data: bytes) -> bytes:
        """The line of some bytes of an output."""
        return self._line(b'{"chunk":"%s"}' % b64encode(data))

    def seal(self) -> bytes:
        """The line after a session."""
        sealed = SessionSealed(
            sealed=self._session,
            commits=self._commits,
            events=self._events,
            outputs=self._outputs,
            digest=self._digest.hexdigest(),
        )
        self._totals = self._totals.plus(sealed)
        return self._line(to_json(sealed.wire()))

    def end(self) -> bytes:
        """The last line."""
        return self._line(
            to_json(ExportEnd(end=self._totals, digest=self._digest.hexdigest()).wire())
        )

    def _line(self, text: bytes) -> bytes:
        line = text + b"\n"
        self._digest.update(line)
        return line


def _events_of(payload: bytes) -> int | None:
    """How many events a commit has; None if its bytes are no line of JSON."""
    try:
        raw: Any = from_json(payload)
    except ValueError:
        return None
    if not isinstance(raw, dict) or b"\n" in payload:
        return None
    events = raw.get("events")
    return len(events) if isinstance(events, list) else 0
