"""Answers `file.list`, `file.read` and `file.find`: what a location holds, for people who look at it."""

import asyncio
import os
import stat
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead_eventlog.register_ports import Approvals
from fairlead_schema.commands.location_files import (
    PART_BYTES_MAX,
    FileEntries,
    FileEntry,
    FilePart,
    FindFiles,
    ListFiles,
    ReadFile,
)
from fairlead_schema.errors import FileMissing, Forbidden, InvalidRequest, ServiceUnavailable
from fairlead_schema.ids import TenantId
from fairlead_service.config.configuration import Config
from fairlead_tools.files import kind
from fairlead_tools.files.directory import ENTRIES_MAX, list_directory
from fairlead_tools.files.path import PathRefused, Place, is_path_error, open_place, resolve
from fairlead_tools.files.search.search import BadSearch, SearchEngine, SearchFailed, find_engine
from fairlead_tools.location_files.access import MayRead, permitted_directory, read_permission
from fairlead_tools.location_files.best_fit import entries_of, rank

OCTETS: Final = "application/octet-stream"
SEARCHED_MAX: Final = 50_000
"""A search looks at so many files at most."""


class LocationFiles:
    """Looks at the files of locations for clients. `approvals` are there while NATS is connected."""

    def __init__(self, config: Config, engine: SearchEngine | None = None) -> None:
        self._config = config
        self._engine = engine or find_engine()
        self.approvals: Approvals | None = None

    async def list(self, tenant: TenantId, command: ListFiles) -> FileEntries:
        """The entries of a directory that may be seen. Raises Refused."""
        directory, may_read = await self._open(tenant, command)
        place = await self._permitted_place(directory, command.path, may_read)
        return await asyncio.to_thread(_list, place, command.path)

    async def read(self, tenant: TenantId, command: ReadFile) -> FilePart:
        """The bytes of a file from an offset on, as many as one answer holds. Raises Refused."""
        directory, may_read = await self._open(tenant, command)
        place = await self._permitted_place(directory, command.path, may_read)
        return await asyncio.to_thread(_read_part, place, command)

    async def find(self, tenant: TenantId, command: FindFiles) -> FileEntries:
        """The entries below the location that fit the letters best. Raises Refused."""
        directory, may_read = await self._open(tenant, command)

        def accept(_directory: Path, name: str) -> bool:
            return may_read(name)

        root = Path(directory)
        try:
            paths, end = await self._engine.files(root, accept, SEARCHED_MAX)
        except (BadSearch, SearchFailed) as error:
            raise ServiceUnavailable(f"The search failed: {error}", service="file.find") from error
        names = [path.relative_to(root) for path in paths]
        found = rank(entries_of(names, command.type), command.query)
        return FileEntries(
            entries=tuple(found[: command.limit]),
            truncated=not end.complete or len(found) > command.limit,
        )

    async def _open(
        self, tenant: TenantId, command: ListFiles | ReadFile | FindFiles
    ) -> tuple[str, MayRead]:
        assert self.approvals is not None, "the server answers only while the log is connected"
        location = command.location
        directory = await asyncio.to_thread(permitted_directory, self._config, tenant, location)
        may_read = await read_permission(
            self._config, self.approvals, tenant, location, command.agent
        )
        return directory, may_read

    async def _permitted_place(self, directory: str, path: str, may_read: MayRead) -> Place:
        with _path_errors_as_refusals(path):
            place = await asyncio.to_thread(resolve, directory, path, directory)
            if place.root is None:
                raise PathRefused("it lies outside the location")
        if not may_read(place.resource):
            raise Forbidden(f"The rules do not permit to read {place.resource} without being asked")
        return place


def _list(place: Place, path: str) -> FileEntries:
    with _path_errors_as_refusals(path), open_place(place) as (descriptor, status):
        if not stat.S_ISDIR(status.st_mode):
            raise InvalidRequest(f"Not a directory: {path}", kind="Query", field="path")
        page = list_directory(descriptor, place.path, limit=ENTRIES_MAX)
    above = "" if place.resource == "." else f"{place.resource}/"
    entries = (FileEntry(path=above + name.rstrip("/"), type=type_) for name, type_ in page.entries)
    return FileEntries(entries=tuple(entries), truncated=page.next is not None)


def _read_part(place: Place, command: ReadFile) -> FilePart:
    with _path_errors_as_refusals(command.path), open_place(place) as (descriptor, status):
        if stat.S_ISDIR(status.st_mode):
            raise InvalidRequest(f"Not a file: {command.path}", kind="Query", field="path")
        head = os.pread(descriptor, kind.HEAD, 0)
        data = os.pread(descriptor, PART_BYTES_MAX, command.offset)
    return FilePart(
        path=place.resource,
        mime=_mime(place.path.name, head),
        size=status.st_size,
        version=f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}",
        offset=command.offset,
        data=b64encode(data).decode("ascii"),
    )


def _mime(name: str, head: bytes) -> str:
    image = kind.image_type(head)
    if image is not None:
        return image
    return OCTETS if kind.is_binary(name, head) or b"\0" in head else kind.text_type(name)


@contextmanager
def _path_errors_as_refusals(path: str) -> Iterator[None]:
    try:
        yield
    except PathRefused as error:
        text = f"The path cannot be used: {error}"
        raise InvalidRequest(text, kind="Query", field="path") from error
    except OSError as error:
        if not is_path_error(error):
            raise
        raise FileMissing(path) from error
