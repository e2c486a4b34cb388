"""`GET /api/fs/…`: the files of a location. The tools service reads them, under the rules of calls."""

from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from pydantic import Field
from starlette.responses import Response, StreamingResponse

from fairlead_gateway.http.answers import answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, Text, WholeNumber, file_path_of
from fairlead_gateway.log.commands import send_command
from fairlead_gateway.routes.server.location import LocationQuery, select_location
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.location_files import (
    FOUND_DEFAULT,
    FOUND_MAX,
    EntryType,
    FileEntries,
    FileEntry,
    FilePart,
    FilePath,
    FindFiles,
    ListFiles,
    ReadFile,
)
from fairlead_schema.errors import FileMissing, Forbidden, PayloadTooLarge, ServiceUnavailable
from fairlead_schema.location import LocationInfo, LocationRef
from fairlead_schema.model import Model

FILE_BYTES_MAX: Final = 64 * 1024 * 1024
HTML: Final = "text/html"


class _AgentQuery(LocationQuery):
    agent: Text | None = None
    """Whose rules judge what may be read; the default agent's without one."""


class ListFilesQuery(_AgentQuery):
    path: FilePath = "."


class FindFilesQuery(_AgentQuery):
    query: Annotated[Text, Field(min_length=1, max_length=256)]
    type: EntryType | None = None
    limit: Annotated[WholeNumber, Field(ge=1, le=FOUND_MAX)] = FOUND_DEFAULT


class FilesAnswer(Model):
    location: LocationInfo
    data: tuple[FileEntry, ...]
    truncated: bool | None = None
    """True if there are more entries than these."""


async def _list(request: ApiRequest[ListFilesQuery, EmptyInput]) -> Response:
    command = ListFiles(path=request.query.path, **_place(request))
    return await _entries(request, "file.list", command)


async def _find(request: ApiRequest[FindFilesQuery, EmptyInput]) -> Response:
    query = request.query
    wanted: dict[str, Any] = {} if query.type is None else {"type": query.type}
    command = FindFiles(query=query.query, limit=query.limit, **wanted, **_place(request))
    return await _entries(request, "file.find", command)


async def _entries(
    request: ApiRequest[Any, EmptyInput], verb: str, command: ListFiles | FindFiles
) -> Response:
    found = await send_command(request, verb, command, CommandAnswer[FileEntries])
    location = select_location(request)
    return answer(
        FilesAnswer(location=location, data=found.entries, truncated=found.truncated or None)
    )


async def _read(request: ApiRequest[_AgentQuery, EmptyInput]) -> Response:
    command = ReadFile(path=file_path_of(request.http), **_place(request))
    first = await _read_part(request, command)
    if first.size > FILE_BYTES_MAX:
        text = f"{first.path} has {first.size} bytes, and at most {FILE_BYTES_MAX} are served"
        raise PayloadTooLarge(text, resource=first.path)
    return StreamingResponse(
        _read_on(request, command, first), media_type=None, headers=_headers(first)
    )


async def _read_on(
    request: ApiRequest[_AgentQuery, EmptyInput], command: ReadFile, part: FilePart
) -> AsyncIterator[bytes]:
    """The bytes of a file, part by part. A file that changes meanwhile breaks the answer off."""
    version, offset = part.version, 0
    while True:
        data = b64decode(part.data)
        yield data
        offset += len(data)
        if offset >= part.size:
            return
        part = await _read_part(request, command.model_copy(update={"offset": offset}))
        if part.version != version or not part.data:
            raise ServiceUnavailable(f"{part.path} changed while it was read", service="file.read")


async def _read_part(request: ApiRequest[_AgentQuery, EmptyInput], command: ReadFile) -> FilePart:
    return await send_command(request, "file.read", command, CommandAnswer[FilePart])


def _place(request: ApiRequest[Any, EmptyInput]) -> dict[str, Any]:
    location = select_location(request)
    place = LocationRef(directory=location.directory, workspace_id=location.workspace_id)
    agent = request.query.agent
    return {"location": place} if agent is None else {"location": place, "agent": agent}


def _headers(part: FilePart) -> dict[str, str]:
    # Files are untrusted. A browser must not run them as a page of this server.
    mime = "text/plain" if part.mime == HTML else part.mime
    charset = "; charset=utf-8" if mime.startswith("text/") else ""
    return {
        "content-type": f"{mime}{charset}",
        "content-length": str(part.size),
        "content-disposition": "attachment",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }


_ERRORS: Final = (FileMissing, Forbidden, ServiceUnavailable)

LIST = Operation(
    id="fs.list",
    method="GET",
    path="/api/fs/list",
    scope="session:write",
    summary="The entries of a directory of the location.",
    respond=_list,
    query=ListFilesQuery,
    answer=FilesAnswer,
    errors=_ERRORS,
)

FIND = Operation(
    id="fs.find",
    method="GET",
    path="/api/fs/find",
    scope="session:write",
    summary="The files and directories of the location that fit some letters, the best first.",
    respond=_find,
    query=FindFilesQuery,
    answer=FilesAnswer,
    errors=_ERRORS,
)

READ = Operation(
    id="fs.read",
    method="GET",
    path="/api/fs/read/{path}",
    scope="session:write",
    summary="One file of the location.",
    respond=_read,
    query=_AgentQuery,
    answer=None,
    errors=(*_ERRORS, PayloadTooLarge),
    media="application/octet-stream",
)
