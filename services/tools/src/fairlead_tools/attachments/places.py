"""Reads attached files and folders: under the location of the session, as `read` would be permitted."""

import asyncio
import stat
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from fairlead_session.media.kind import find_lie
from fairlead_session.people.permission import Need
from fairlead_tools.attachments.content import NotTaken, RawContent
from fairlead_tools.files.directory import list_directory
from fairlead_tools.files.path import (
    PathRefused,
    Place,
    external_needs,
    is_path_error,
    open_place,
    resolve,
)

READ: Final = "read"
Permit = Callable[[tuple[Need, ...]], None]
"""Raises NotTaken unless the rules and approvals allow the needs."""


def path_of(uri: str) -> tuple[str, range | None]:
    """The path that a `file:` URI or a plain path names, and the lines if it names any."""
    if not uri.lower().startswith("file:"):
        return uri, None
    parts = urlsplit(uri)
    query = parse_qs(parts.query)
    first, last = (_number(query.get(key)) for key in ("start", "end"))
    lines = None if first is None else range(first, (last or first) + 1)
    return unquote(parts.path), lines


async def read_place(
    directory: str, checked: str, uri: str, permit: Permit, *, bytes_max: int
) -> RawContent:
    """A file, or the entries of a folder. Raises NotTaken."""
    path, lines = path_of(uri)
    try:
        place = await asyncio.to_thread(resolve, directory, path, checked)
        permit((*external_needs(place), Need(READ, (place.resource,), ("*",))))
        if place.root is None and place.linked:
            raise NotTaken("It is outside of the location and goes through a link.")
        raw = await asyncio.to_thread(_read, place, bytes_max)
    except PathRefused as error:
        raise NotTaken(f"It cannot be read: {error}.") from error
    except OSError as error:
        if not is_path_error(error):
            raise
        raise NotTaken(f"It cannot be read: {error.strerror}.") from error
    return raw if lines is None else _select_lines(raw, lines)


def _read(place: Place, bytes_max: int) -> RawContent:
    with open_place(place) as (descriptor, status):
        if stat.S_ISDIR(status.st_mode):
            page = list_directory(descriptor, place.path)
            more = "" if page.next is None else "\n(There are more entries.)"
            listing = "\n".join(name for name, _ in page.entries) or "(The directory is empty)"
            return RawContent((listing + more).encode(), place.path.name, "text/plain")
        if status.st_size > bytes_max:
            raise NotTaken(f"It has {status.st_size} bytes, and at most {bytes_max} are taken.")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise NotTaken(f"It has more than {bytes_max} bytes.")
        return RawContent(data, place.path.name)


def _select_lines(raw: RawContent, lines: range) -> RawContent:
    if find_lie("text/plain", raw.data) is not None:
        return raw
    whole = raw.data.splitlines(keepends=True)
    chosen = b"".join(whole[lines.start - 1 : lines.stop - 1])
    note = f"Lines {lines.start} to {min(lines.stop - 1, len(whole))} of {len(whole)}"
    return RawContent(chosen, raw.name, raw.mime, note)


def _number(values: list[str] | None) -> int | None:
    text = values[0] if values else ""
    return int(text) if text.isascii() and text.isdigit() and int(text[:9]) > 0 else None
