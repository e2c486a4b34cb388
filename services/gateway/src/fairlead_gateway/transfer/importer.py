"""Imports a verified export: checks everything at the target, stores outputs, then replays events."""

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO, Final, TypeVar

from pydantic_core import to_json

from fairlead_gateway.http.operation import ApiRequest
from fairlead_gateway.log.commands import send_body
from fairlead_gateway.transfer.batches import CommitBatch, commit_batches
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.transfer import (
    CHECKED_IDS_MAX,
    CHECKED_SESSIONS_MAX,
    CheckedSession,
    CheckTransfer,
    EventsReplayed,
    OutputStored,
    ReplayEvents,
    StoreOutput,
    TransferAmounts,
    TransferChecked,
    TransferredSession,
)
from fairlead_schema.errors import ServiceUnavailable
from fairlead_schema.ids import SessionId
from fairlead_schema.model import Model
from fairlead_schema.session_values.stored_file import FileDigest
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.lines import ExportItem, OutputBegun, OutputChunk, SessionBegun
from fairlead_session.transfer.reader import file_lines, trusted_items
from fairlead_session.transfer.verification import ExportSummary, SessionSummary

Data = TypeVar("Data", bound=Model)

TRIES: Final = 4
PAUSE_S: Final = 0.5
YIELD_EVERY: Final = 256


class ImportedSession(Model):
    """What became of one session of an export."""

    session_id: SessionId
    seq: int
    accepted: int
    """How many events were new."""
    skipped: bool = False
    """Another origin replays into the session, so nothing was taken."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to import."""

    origin: str | None = None
    strict: bool = False
    publish: bool = False
    restores: FileDigest | None = None
    """The digest of the file, if it restores stored sessions under their markers."""


class Importer:
    """One import of one verified file into the tenant of the caller."""

    def __init__(
        self,
        request: ApiRequest[Any, Any],
        file: BinaryIO,
        summary: ExportSummary,
        options: ImportOptions,
    ) -> None:
        self._request = request
        self._file = file
        self._sessions = summary.sessions
        self._options = options
        self._checked: dict[SessionId, CheckedSession] = {}

    async def check(self) -> list[ImportedSession]:
        """Whether all of the export fits what is here. Writes nothing. Raises the refusal of ingest."""
        for command in self._check_commands():
            answer = await self._send("transfer.check", command, CommandAnswer[TransferChecked])
            self._checked |= {checked.session_id: checked for checked in answer.sessions}
        await self._check_repeats()
        adds = self._amounts()
        await self._send("transfer.check", CheckTransfer(adds=adds), CommandAnswer[TransferChecked])
        return [
            ImportedSession(session_id=id_, seq=each.seq, accepted=0, skipped=each.skipped)
            for id_, each in self._checked.items()
        ]

    async def run(self) -> list[ImportedSession]:
        """Store the outputs, then the events. After a crash the same import goes on where it was."""
        if self._options.restores is not None:
            await self._begin_restore()
        await self._store_outputs()
        done: dict[SessionId, ImportedSession] = {}
        sending: asyncio.Task[EventsReplayed] | None = None
        try:
            for batch in self._batches():
                # The next batch is prepared while ingest writes the last one.
                if sending is not None:
                    _note(done, await sending)
                sending = asyncio.create_task(self._replay(batch))
                await asyncio.sleep(0)
            if sending is not None:
                _note(done, await sending)
        except BaseException:
            if sending is not None:
                sending.cancel()
            raise
        for id_, imported in done.items():
            at = Address(self._request.tenant, id_)
            self._request.runtime.own_writes.note(self._request.principal.name, at, imported.seq)
        return list(done.values())

    async def _begin_restore(self) -> None:
        """Replay the first commit of each session, before the outputs.

        The projector removes the outputs of a session whose log ends with its marker. From here on it
        does not, although it may read the marker again.
        """
        begun: set[SessionId] = set()
        for batch in self._batches():
            if batch.session_id not in begun:
                begun.add(batch.session_id)
                await self._replay(CommitBatch(batch.session_id, batch.commits[:1]))

    def _check_commands(self) -> Iterator[CheckTransfer]:
        sessions = [part for each in self._sessions.values() for part in _checked_parts(each)]
        for start in range(0, len(sessions), CHECKED_SESSIONS_MAX):
            # The options were validated with the query, and an absent one is no null.
            yield CheckTransfer.model_construct(
                sessions=tuple(sessions[start : start + CHECKED_SESSIONS_MAX]),
                origin=self._options.origin,
                strict=self._options.strict,
                restores=self._options.restores,
            )

    async def _check_repeats(self) -> None:
        """Compare the events that are here already, before the first new one is written."""
        here = {id_ for id_, checked in self._checked.items() if checked.seq}
        if not here:
            return
        for batch in self._batches():
            if batch.session_id in here and (await self._replay(batch, check=True)).accepted:
                # What follows is new. It has nothing to be compared with.
                here.discard(batch.session_id)

    def _amounts(self) -> TransferAmounts:
        is_restore = self._options.restores is not None
        coming = [self._sessions[id_] for id_ in self._sessions if not self._is_done(id_)]
        return TransferAmounts(
            sessions=0 if is_restore else sum(not self._checked[each.id].seq for each in coming),
            log_bytes=sum(each.bytes for each in coming),
            output_bytes=sum(sum(each.outputs.values()) for each in coming),
        )

    def _is_done(self, session_id: SessionId) -> bool:
        checked = self._checked[session_id]
        return checked.skipped or checked.seq >= self._sessions[session_id].seq

    async def _store_outputs(self) -> None:
        session_id, output = "", _OutputSender(self, "", None)
        for number, item in enumerate(self._items()):
            if isinstance(item, SessionBegun):
                session_id = item.begin
            elif isinstance(item, OutputBegun):
                is_wanted = not self._checked[session_id].skipped
                output = _OutputSender(self, session_id, item if is_wanted else None)
                await output.send_empty()
            elif isinstance(item, OutputChunk):
                await output.send(item.data)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def store_part(self, command: StoreOutput) -> OutputStored:
        """Send one part of an output to ingest."""
        return await self._send("transfer.output", command, CommandAnswer[OutputStored])

    async def _replay(self, batch: CommitBatch, *, check: bool = False) -> EventsReplayed:
        """Send a batch. Its commits were validated with the file, and go on byte for byte."""
        fields = ReplayEvents.model_construct(
            session_id=batch.session_id,
            commits=[],
            through=self._sessions[batch.session_id].seq,
            origin=self._options.origin,
            strict=self._options.strict,
            publish=self._options.publish,
            check=check,
            restores=self._options.restores,
        )
        head = to_json(fields.model_dump(by_alias=True, exclude_none=True, exclude={"commits"}))
        body = b'%s,"commits":[%s]}' % (head[:-1], b",".join(batch.commits))
        return await self._send_body("transfer.replay", body, CommandAnswer[EventsReplayed])

    def _batches(self) -> Iterator[CommitBatch]:
        skipped = {id_ for id_, checked in self._checked.items() if checked.skipped}
        for batch in commit_batches(self._items()):
            if batch.session_id not in skipped:
                yield batch

    def _items(self) -> Iterator[ExportItem]:
        self._file.seek(0)
        return trusted_items(file_lines(self._file))

    async def _send(self, verb: str, command: Model, answer: type[CommandAnswer[Data]]) -> Data:
        body = command.model_dump_json(by_alias=True, exclude_none=True).encode()
        return await self._send_body(verb, body, answer)

    async def _send_body(self, verb: str, body: bytes, answer: type[CommandAnswer[Data]]) -> Data:
        """Send a command, again if ingest is away for a moment: repeats change nothing."""
        for _ in range(TRIES - 1):
            try:
                return await send_body(self._request, verb, body, answer)
            except ServiceUnavailable as error:
                if error.body.kind is not None:
                    raise
                await asyncio.sleep(PAUSE_S)
        return await send_body(self._request, verb, body, answer)


class _OutputSender:
    """Sends one output part by part; the last part makes it readable."""

    def __init__(
        self, importer: Importer, session_id: SessionId, output: OutputBegun | None
    ) -> None:
        self._importer = importer
        self._session_id = session_id
        self._output = output
        self._upload = secrets.token_hex(11)
        self._digest = sha256()
        self._sent = self._parts = self._first_bytes = 0

    async def send_empty(self) -> None:
        """Send the one part of an output without bytes."""
        if self._output is not None and self._output.bytes == 0:
            await self.send(b"")

    async def send(self, data: bytes) -> None:
        """Send the next part. An output that is there already needs no more of them."""
        output = self._output
        if output is None:
            return
        self._digest.update(data)
        self._sent += len(data)
        self._first_bytes = self._first_bytes or len(data)
        command = StoreOutput.model_construct(
            session_id=self._session_id,
            id=output.output,
            upload=self._upload,
            part=self._parts,
            first_bytes=self._first_bytes,
            data=data,
        )
        if self._sent == output.bytes:
            last = {"mime": output.mime, "bytes": output.bytes, "digest": self._digest.hexdigest()}
            command = command.model_copy(update=last)
        self._parts += 1
        if (await self._importer.store_part(command)).complete:
            self._output = None


def _checked_parts(session: SessionSummary) -> Iterator[TransferredSession]:
    """A session with its message ids, in parts that fit one command."""
    for start in range(0, max(1, len(session.message_ids)), CHECKED_IDS_MAX):
        yield TransferredSession(
            session_id=session.id,
            through=session.seq,
            directory=session.directory,
            message_ids=tuple(session.message_ids[start : start + CHECKED_IDS_MAX]),
            **({} if session.pool is None else {"pool": session.pool}),
        )


def _note(done: dict[SessionId, ImportedSession], answer: EventsReplayed) -> None:
    before = done.get(answer.session_id)
    done[answer.session_id] = ImportedSession(
        session_id=answer.session_id,
        seq=answer.seq,
        accepted=answer.accepted + (0 if before is None else before.accepted),
        skipped=answer.skipped,
    )
