"""Which locations a session may have: those inside the configured roots."""

import os.path
from collections.abc import Sequence

from fairlead_schema.errors import InvalidRequest
from fairlead_schema.location import LocationRef


def check_location(roots: Sequence[str], location: LocationRef) -> None:
    """Refuse a location outside all roots. Without roots every location is allowed.

    Links and `..` are resolved on both sides, so that no spelling of a path leads outside.
    """
    if roots and not any(_is_inside(location.directory, root) for root in roots):
        text = f"{location.directory} is outside the configured roots: {', '.join(roots)}"
        raise InvalidRequest(text, kind="Body", field="location.directory")


def _is_inside(directory: str, root: str) -> bool:
    try:
        directory, root = os.path.realpath(directory), os.path.realpath(root)
        return os.path.commonpath((directory, root)) == root
    except ValueError:  # The path holds a null character.
        return False
