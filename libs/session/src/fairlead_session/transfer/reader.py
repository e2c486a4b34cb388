"""Reads the lines of an export: their form, their order and their digests. Pure, line by line."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, BinaryIO, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from fairlead_schema.ids import SessionId
from fairlead_schema.model import Model
from fairlead_schema.transfer.lines import (
    COMMIT,
    FORMAT,
    LINE_BYTES_MAX,
    ExportedCommit,
    ExportEnd,
    ExportHeader,
    ExportItem,
    ExportTotals,
    OutputBegun,
    OutputChunk,
    SessionBegun,
    SessionSealed,
)
from fairlead_session.transfer.errors import ExportError, ExportFault

Line = TypeVar("Line", bound=Model)
_KINDS: Final[dict[str, type[SessionBegun | OutputBegun | SessionSealed | ExportEnd]]] = {
    "begin": SessionBegun,
    "output": OutputBegun,
    "sealed": SessionSealed,
    "end": ExportEnd,
}


class ExportReader:
    """What one reader has read of an export, and what may come next."""

    def __init__(self) -> None:
        self._digest = sha256()
        self._line = 0
        self._session: SessionId | None = None
        self._seen: set[SessionId] = set()
        self._commits = self._events = self._outputs = 0
        self._output_left = 0
        self._totals = ExportTotals()
        self.header: ExportHeader | None = None
        self.is_complete = False

    @property
    def line(self) -> int:
        """The number of the line that was read last."""
        return self._line

    def read(self, line: bytes) -> ExportItem:
        """The next line. Raises ExportError."""
        self._line += 1
        if len(line) > LINE_BYTES_MAX:
            raise self.error("LineTooLong", f"more than {LINE_BYTES_MAX} bytes")
        if self.is_complete:
            raise self.error("Order", "something follows the end of the export")
        if not line.endswith(b"\n"):
            raise self.error("Truncated", "the line ends before its newline")
        item = self._read_header(line) if self.header is None else self._read_line(line)
        self._digest.update(line)
        return item

    def finish(self) -> None:
        """Check that the file was read to its end. Raises ExportError."""
        if self.header is None:
            raise self.error("NotAnExport", "the file is empty")
        if not self.is_complete:
            raise self.error("Truncated", "the file ends before its last line")

    def count_events(self, number: int) -> None:
        """Count the events of the commit that was read last."""
        self._events += number

    def error(self, fault: ExportFault, reason: str, *, seq: int | None = None) -> ExportError:
        """An error at the line that was read last."""
        return ExportError(fault, reason, line=self._line, session_id=self._session, seq=seq)

    def _read_header(self, line: bytes) -> ExportHeader:
        raw = self._parse(line, "NotAnExport")
        if raw.get("fairlead") != "export":
            raise self.error("NotAnExport", "the first line is not that of an export")
        version = raw.get("format")
        if type(version) is int and version > FORMAT:
            reason = f"format {version} is newer than {FORMAT}: install the release that wrote it"
            raise self.error("Format", reason)
        header = self._validate(ExportHeader, raw)
        self.header = header
        return header

    def _read_line(self, line: bytes) -> ExportItem:
        commit = COMMIT.fullmatch(line, endpos=len(line) - 1)
        if commit is not None:
            return self._take_commit(ExportedCommit(commit[1].decode(), commit[2]))
        raw = self._parse(line, "Malformed")
        first = next(iter(raw), "")
        if first == "of":
            return self._take_commit(ExportedCommit(str(raw["of"]), self._base64(raw.get("raw"))))
        if first == "chunk":
            return self._take_chunk(OutputChunk(self._base64(raw["chunk"])))
        kind = _KINDS.get(first)
        if kind is None:
            raise self.error("Malformed", f"unknown kind of line {first[:40]!r}")
        item = self._validate(kind, raw)
        match item:
            case SessionBegun():
                self._begin(item)
            case OutputBegun():
                self._begin_output(item)
            case SessionSealed():
                self._seal(item)
            case ExportEnd():
                self._end(item)
        return item

    def _begin(self, item: SessionBegun) -> None:
        if self._session is not None:
            raise self.error("Order", f"{item.begin} begins inside of {self._session}")
        if item.begin in self._seen:
            raise self.error("Order", f"{item.begin} begins a second time")
        self._session = item.begin
        self._seen.add(item.begin)
        self._commits = self._events = self._outputs = 0

    def _take_commit(self, item: ExportedCommit) -> ExportedCommit:
        if self._session is None or self._outputs:
            raise self.error("Order", "a commit stands outside of the commits of a session")
        if item.session_id != self._session:
            reason = f"a commit of {item.session_id} stands in the session {self._session}"
            raise self.error("OtherAggregate", reason)
        self._commits += 1
        return item

    def _begin_output(self, item: OutputBegun) -> None:
        if self._session is None or not self._commits or self._output_left:
            raise self.error("Order", "an output stands outside of the outputs of a session")
        self._outputs += 1
        self._output_left = item.bytes

    def _take_chunk(self, item: OutputChunk) -> OutputChunk:
        if not 0 < len(item.data) <= self._output_left:
            raise self.error("Order", "a chunk belongs to no output")
        self._output_left -= len(item.data)
        return item

    def _seal(self, item: SessionSealed) -> None:
        if item.sealed != self._session or self._output_left or not self._commits:
            raise self.error("Order", f"{item.sealed} ends before it is complete")
        self._check_digest(item.digest)
        if (item.commits, item.events, item.outputs) != (
            self._commits,
            self._events,
            self._outputs,
        ):
            raise self.error("Edited", f"{item.sealed} holds another number of lines than it says")
        self._totals = self._totals.plus(item)
        self._session = None

    def _end(self, item: ExportEnd) -> None:
        if self._session is not None:
            raise self.error("Order", f"the export ends inside of {self._session}")
        self._check_digest(item.digest)
        if item.end != self._totals:
            raise self.error("Edited", "the export holds another number of lines than it says")
        self.is_complete = True

    def _check_digest(self, digest: str) -> None:
        if digest != self._digest.hexdigest():
            raise self.error("Edited", "a line above this one was changed after the export")

    def _parse(self, line: bytes, fault: ExportFault) -> dict[str, Any]:
        try:
            raw = from_json(line)
        except ValueError as error:
            raise self.error(fault, f"no JSON: {error}") from error
        if not isinstance(raw, dict):
            raise self.error(fault, "no JSON object")
        return raw

    def _validate(self, model: type[Line], raw: dict[str, Any]) -> Line:
        try:
            return model.model_validate(raw)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise self.error("Malformed", f"{field}: {first['msg']}") from error

    def _base64(self, text: object) -> bytes:
        try:
            return b64decode(text if isinstance(text, str) else "!", validate=True)
        except (Base64Error, ValueError) as error:
            raise self.error("Malformed", "no base64") from error


def file_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, none of them longer than one byte above the limit."""
    while line := file.readline(LINE_BYTES_MAX + 1):
        yield line


def read_items(reader: ExportReader, lines: Iterable[bytes]) -> Iterator[ExportItem]:
    """All items of an export up to its end. Raises ExportError."""
    for line in lines:
        yield reader.read(line)
    reader.finish()


def trusted_items(lines: Iterable[bytes]) -> Iterator[ExportItem]:
    """The items of an export that was verified before."""
    for line in lines:
        commit = COMMIT.fullmatch(line, endpos=len(line) - 1)
        if commit is not None:
            yield ExportedCommit(commit[1].decode(), commit[2])
            continue
        raw = from_json(line)
        first = next(iter(raw))
        if first == "chunk":
            yield OutputChunk(b64decode(raw["chunk"]))
        else:
            yield _KINDS.get(first, ExportHeader).model_validate(raw)
