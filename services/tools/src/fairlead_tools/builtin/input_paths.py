"""Resolves the paths in the input of file tools: before the permission, and again at the run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead_tools.files.path import (
    PathRefused,
    Place,
    check_permitted,
    is_path_error,
    printable,
    resolve,
)
from fairlead_tools.files.private import PRIVATE
from fairlead_tools.registry.tool import CallContext, CallFailed

EDIT: Final = "edit"
READ: Final = "read"
NO_LOCATION: Final = "The session's directory does not exist"


@contextmanager
def path_errors_as(message: str) -> Iterator[None]:
    """Turn errors about a path into a CallFailed with this message. Other errors pass."""
    try:
        yield
    except PathRefused as error:
        raise CallFailed(message) from error
    except OSError as error:
        if not is_path_error(error):
            raise
        raise CallFailed(message) from error


def file_resource(place: Place, directory: Path, name: str) -> str:
    """The name in permissions of a file that a search at a place found."""
    path = directory / name
    return printable(path if place.root is None else path.relative_to(place.root))


async def find_place(context: CallContext, path: str) -> Place:
    """Where a path leads, before a permission is asked. Raises CallFailed, PathRefused, OSError."""
    directory = context.location.directory
    try:
        return await asyncio.to_thread(resolve, directory, path, context.checked_directory)
    except FileNotFoundError as error:
        # Only the location itself has to exist.
        raise CallFailed(f"{NO_LOCATION}: {directory}") from error


async def permitted_place(context: CallContext, path: str, action: str | None) -> Place:
    """Where a path leads at the run. Raises PathRefused if that was not permitted, OSError."""
    place = await find_place(context, path)
    if action == EDIT and PRIVATE.is_read_only(place.path):
        raise PathRefused(f"only the tools service changes it: {path!r}")
    check_permitted(place, action, context.permitted)
    return place
