"""Streams an export: commits and managed outputs as they stand on the servers, line by line."""

from collections import deque
from collections.abc import AsyncIterator, Iterable
from importlib.metadata import version
from typing import Final

from fairlead_eventlog.ports import START
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.runtime import NatsPorts, Runtime
from fairlead_schema.attachments.reference import is_attachment, object_name
from fairlead_schema.identity.principal import Principal
from fairlead_schema.ids import AttachmentId, OutputId, SessionId, TenantId
from fairlead_schema.record import LEVEL_NEWEST
from fairlead_schema.subjects import Address
from fairlead_schema.transfer.lines import CHUNK_BYTES, ExportHeader, ExportLines, ExportScope
from fairlead_service import ids
from fairlead_session.transfer.events import is_marker
from fairlead_session.transfer.named import named_by_commit

PIECE_BYTES: Final = 256 * 1024


async def export_sessions(
    runtime: Runtime,
    principal: Principal,
    scope: ExportScope,
    session_ids: AsyncIterator[SessionId],
) -> AsyncIterator[bytes]:
    """The export of some sessions, in pieces of some lines. With a tree their children follow them."""
    ports = runtime.nats()
    lines = ExportLines(_header(ports, principal, scope))
    piece = bytearray(lines.first)
    async for root in session_ids:
        waiting = deque((root,))
        while waiting:
            session = _SessionExport(ports, Address(principal.tenant, waiting.popleft()), lines)
            async with auto_close(session.lines()) as session_lines:
                async for line in session_lines:
                    piece += line
                    if len(piece) >= PIECE_BYTES:
                        yield bytes(piece)
                        piece.clear()
            if scope == "tree":
                waiting.extend(session.children)
    yield bytes(piece) + lines.end()


def _header(ports: NatsPorts, principal: Principal, scope: ExportScope) -> ExportHeader:
    incarnation = ports.status.current.incarnation
    return ExportHeader(
        level=LEVEL_NEWEST,
        release=version("fairlead-gateway"),
        scope=scope,
        tenant=principal.tenant,
        incarnation=None if incarnation is None else incarnation.id,
        by=principal.name,
        at=ids.now_ms(),
    )


class _SessionExport:
    """One session: its commits, and then the outputs and attachments that its events name."""

    def __init__(self, ports: NatsPorts, at: Address, lines: ExportLines) -> None:
        self._ports = ports
        self._at = at
        self._lines = lines
        self._outputs: dict[OutputId | AttachmentId, None] = {}
        self.children: list[SessionId] = []

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of the session; none if it does not exist, or no longer, or is stored in a file."""
        if await self._ports.log.end(self._at) == START:
            return
        begin = True
        entries = self._ports.shards.session_entries(self._at, after=0)
        async with auto_close(entries):
            async for entry in entries:
                if is_marker(entry.payload):
                    continue  # An earlier restore left it. It is no event of the session.
                if begin:
                    yield self._lines.begin(self._at.session_id)
                    begin = False
                named = named_by_commit(self._at.session_id, entry.payload)
                self._outputs |= dict.fromkeys(named.outputs)
                self.children += named.children
                yield self._lines.commit(entry.payload)
        if begin:
            return
        for output_id in self._outputs:
            async with auto_close(self._output_lines(output_id)) as output_lines:
                async for line in output_lines:
                    yield line
        yield self._lines.seal()

    async def _output_lines(self, output_id: OutputId | AttachmentId) -> AsyncIterator[bytes]:
        """The lines of an output or an attachment; none if it is not stored any more."""
        tenant: TenantId = self._at.tenant
        store, name = self._ports.outputs, output_id
        if is_attachment(output_id):
            store, name = self._ports.attachments, object_name(self._at.session_id, output_id)
        output = await store.stat(tenant, name)
        if output is None:
            return
        yield self._lines.output(output_id, output.mime, output.bytes)
        async with auto_close(store.get(tenant, name)) as pieces:
            async for piece in pieces:
                for data in _split(piece):
                    yield self._lines.chunk(data)


def _split(piece: bytes) -> Iterable[bytes]:
    return (piece[start : start + CHUNK_BYTES] for start in range(0, len(piece), CHUNK_BYTES))
