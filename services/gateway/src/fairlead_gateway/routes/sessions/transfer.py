"""Export and import of sessions: files that leave through the gateway, and files that come in."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, BinaryIO, Final

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.log.commands import send_session_command
from fairlead_gateway.reads.read_model import SessionAnchor, SessionFilter
from fairlead_gateway.transfer.export_stream import export_sessions
from fairlead_gateway.transfer.importer import ImportedSession, Importer, ImportOptions
from fairlead_gateway.transfer.spool import open_spool, spool_body, write_spool
from fairlead_schema.commands.transfer import OriginName, StoreSession
from fairlead_schema.errors import (
    Conflict,
    InvalidExport,
    InvalidRequest,
    LimitReached,
    PayloadTooLarge,
    ReplayConflict,
    ServiceUnavailable,
    SessionIsStored,
    SessionNotFound,
)
from fairlead_schema.ids import SessionId
from fairlead_schema.model import InputModel, Model
from fairlead_schema.session_values.stored_file import StoredFile
from fairlead_schema.transfer.lines import ExportScope
from fairlead_session.transfer.copy import copy_export
from fairlead_session.transfer.errors import ExportError
from fairlead_session.transfer.reader import file_lines
from fairlead_session.transfer.verification import ExportSummary, verify_export

PAGE: Final = 500
SHOWN_MAX: Final = 1_000
"""The answer lists so many sessions at most, and counts all of them."""


class ExportQuery(InputModel):
    tree: bool = False
    """Whether the sessions of sub-agents follow."""


class ImportQuery(InputModel):
    id: SessionId | None = None
    """Import a copy under this id, with new ids for everything in it."""
    origin: OriginName | None = None
    strict: bool = False
    publish: bool = False
    check: bool = False
    """Verify and check everything, and write nothing."""
    restore: bool = False
    """Bring stored sessions back under their own ids. The marker of each must name this file."""


class StoredFileInput(StoredFile, InputModel):
    """The file that holds all events of the session."""


class ImportReport(Model):
    """What an import brought."""

    sessions: tuple[ImportedSession, ...]
    """The first sessions of the export, at most 1,000 of them."""
    count: Annotated[int, Field(ge=0)]
    accepted: Annotated[int, Field(ge=0)]
    """How many events were new."""
    checked_only: bool


class ImportAnswer(Model):
    data: ImportReport


async def _export_session(request: ApiRequest[ExportQuery, EmptyInput]) -> Response:
    scope: ExportScope = "tree" if request.query.tree else "session"

    async def only() -> AsyncIterator[SessionId]:
        yield request.at.session_id

    return _download(request, scope, only(), request.at.session_id)


async def _export_tenant(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    await request.is_list_stale()
    return _download(request, "tenant", _all_sessions(request), request.tenant)


async def _all_sessions(request: ApiRequest[EmptyInput, EmptyInput]) -> AsyncIterator[SessionId]:
    """Every session of the tenant, the oldest first: parents come before their children."""
    anchor: SessionAnchor | None = None
    while True:
        page = await request.runtime.read_model.sessions(
            request.tenant, SessionFilter(), order="asc", after=anchor, limit=PAGE
        )
        for session in page:
            yield session.id
        if not page:
            return
        anchor = SessionAnchor(page[-1].time.created, page[-1].id)


def _download(
    request: ApiRequest[ExportQuery, EmptyInput] | ApiRequest[EmptyInput, EmptyInput],
    scope: ExportScope,
    session_ids: AsyncIterator[SessionId],
    name: str,
) -> Response:
    pieces = export_sessions(request.runtime, request.principal, scope, session_ids)

    async def stream() -> AsyncIterator[bytes]:
        with request.runtime.limits.open_stream(request.principal.name):
            async with auto_close(pieces):
                async for piece in pieces:
                    yield piece

    headers = {
        "content-disposition": f'attachment; filename="{name}.fairlead.jsonl"',
        "cache-control": "private, no-store",
        "x-content-type-options": "nosniff",
    }
    return StreamingResponse(stream(), media_type="application/octet-stream", headers=headers)


async def _store(request: ApiRequest[EmptyInput, StoredFileInput]) -> Response:
    command = StoreSession.model_construct(
        session_id=request.at.session_id, file=StoredFile(**dict(request.body))
    )
    await send_session_command(request, "session.store", command)
    return empty_answer()


async def _import(request: ApiRequest[ImportQuery, EmptyInput]) -> Response:
    runtime, name = request.runtime, request.principal.name
    runtime.limits.check_bytes(name)
    with runtime.limits.open_stream(name), open_spool() as body, open_spool() as copy:
        settings = runtime.settings
        size = await spool_body(
            request.http,
            body,
            bytes_max=settings.import_bytes_max,
            stall_s=settings.body_timeout_s,
            setting="import_bytes_max",
        )
        runtime.limits.take_bytes(name, size)
        try:
            file, summary = await asyncio.to_thread(_prepare, body, copy, request.query.id)
        except ExportError as error:
            raise InvalidExport(
                error.fault, str(error), session_id=error.session_id, seq=error.seq
            ) from error
        query = request.query
        options = _options(query, summary)
        importer = Importer(request, file, summary, options)
        sessions = await importer.check()
        if not query.check:
            sessions = await importer.run()
    return answer(ImportAnswer(data=_report(sessions, checked_only=query.check)))


def _options(query: ImportQuery, summary: ExportSummary) -> ImportOptions:
    """How to import. Raises InvalidRequest for options that do not go with a restore."""
    if not query.restore:
        return ImportOptions(origin=query.origin, strict=query.strict, publish=query.publish)
    if query.id or query.origin or query.strict or query.publish:
        text = (
            "A restore brings sessions back as they were: leave id, origin, strict and publish out"
        )
        raise InvalidRequest(text, kind="Query", field="restore")
    return ImportOptions(restores=summary.digest)


def _prepare(
    body: BinaryIO, copy: BinaryIO, copy_id: SessionId | None
) -> tuple[BinaryIO, ExportSummary]:
    """Verify an export, and its copy if one is wanted: the file to import. Raises ExportError."""
    summary = verify_export(file_lines(body))
    if copy_id is None:
        return body, summary
    if len(summary.roots) != 1:
        text = f"An export of {len(summary.roots)} sessions cannot get one id: leave `id` out"
        raise InvalidRequest(text, kind="Query", field="id")
    body.seek(0)
    write_spool(copy, copy_export(file_lines(body), summary.roots[0], copy_id))
    return copy, verify_export(file_lines(copy))


def _report(sessions: Sequence[ImportedSession], *, checked_only: bool) -> ImportReport:
    return ImportReport(
        sessions=tuple(sessions[:SHOWN_MAX]),
        count=len(sessions),
        accepted=sum(session.accepted for session in sessions),
        checked_only=checked_only,
    )


EXPORT = Operation(
    id="session.export",
    method="GET",
    path="/api/session/{sessionID}/export",
    scope="session:read",
    summary="The session as one verifiable file; with `tree` also its sub-agents.",
    respond=_export_session,
    query=ExportQuery,
    answer=None,
    errors=(SessionNotFound, ServiceUnavailable),
    media="application/octet-stream",
)

EXPORT_TENANT = Operation(
    id="tenant.export",
    method="GET",
    path="/api/tenant/export",
    scope="tenant:admin",
    summary="All sessions of the tenant as one verifiable file.",
    respond=_export_tenant,
    answer=None,
    errors=(ServiceUnavailable,),
    media="application/octet-stream",
)

IMPORT = Operation(
    id="session.import",
    method="POST",
    path="/api/session/import",
    scope="tenant:admin",
    summary="Import an export. Nothing is written unless all of it can be; nobody is woken.",
    respond=_import,
    query=ImportQuery,
    answer=ImportAnswer,
    takes="application/octet-stream",
    errors=(
        InvalidExport,
        ReplayConflict,
        SessionIsStored,
        PayloadTooLarge,
        LimitReached,
        ServiceUnavailable,
    ),
)

STORE = Operation(
    id="session.store",
    method="POST",
    path="/api/session/{sessionID}/store",
    scope="tenant:admin",
    summary="A verified file holds the session: its events leave the log, and a marker names the file.",
    respond=_store,
    body=StoredFileInput,
    answer=None,
    status=204,
    commands=True,
    errors=(SessionNotFound, SessionIsStored, Conflict, ServiceUnavailable),
)
