"""Reads a whole file that is about to be changed."""

import os
import stat
from errno import EISDIR

from fairlead_tools.files.path import Place, open_place
from fairlead_tools.files.safe_write import CHANGE_BYTES_MAX, FileTooLarge


def read_content(place: Place) -> tuple[bytes, os.stat_result]:
    """The bytes of a file and its status. Raises FileTooLarge."""
    with open_place(place) as (descriptor, status):
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(EISDIR, "is a directory")
        with open(descriptor, "rb", closefd=False) as file:
            raw = file.read(CHANGE_BYTES_MAX + 1)
        if len(raw) > CHANGE_BYTES_MAX:
            raise FileTooLarge
        return raw, status
