"""All bytes of a file that is about to be changed."""

import os
import stat
from errno import EISDIR
from typing import Final

from fairlead_tools.files.path import Place, opened

EDIT_BYTES_MAX: Final = 32 << 20


class TooLarge(Exception):
    """More than anybody edits in one piece."""


def content(place: Place) -> tuple[bytes, os.stat_result]:
    """What a file holds, and what kind of file it is. Raises TooLarge."""
    with opened(place) as (descriptor, status):
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(EISDIR, "is a directory")
        with open(descriptor, "rb", closefd=False) as file:
            raw = file.read(EDIT_BYTES_MAX + 1)
        if len(raw) > EDIT_BYTES_MAX:
            raise TooLarge
        return raw, status
