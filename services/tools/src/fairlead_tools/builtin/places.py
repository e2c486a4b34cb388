"""How file tools come to the places that their input names: found when asked, checked when run."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairlead_tools.files.path import PathRefused, Place, check_permitted, is_path_error, resolve
from fairlead_tools.registry.tool import CallContext, CallFailed

EDIT: Final = "edit"


@contextmanager
def path_errors_as(message: str) -> Iterator[None]:
    """What is wrong with a path becomes one message; any other defect stays what it is."""
    try:
        yield
    except PathRefused as error:
        raise CallFailed(message) from error
    except OSError as error:
        if not is_path_error(error):
            raise
        raise CallFailed(message) from error


async def find_place(context: CallContext, path: str) -> Place:
    """Where a path leads before anybody is asked. Raises PathRefused, OSError."""
    return await asyncio.to_thread(resolve, context.location.directory, path)


async def permitted_place(context: CallContext, path: str, action: str | None) -> Place:
    """Where a path leads when the call runs: it must be what was permitted. Raises the same."""
    place = await find_place(context, path)
    check_permitted(place, action, context.permitted)
    return place
