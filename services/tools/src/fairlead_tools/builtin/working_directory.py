"""The working directory of a command: found with links followed, and opened before the command."""

import os
from pathlib import Path

from fairlead_tools.builtin.input_paths import NO_LOCATION
from fairlead_tools.registry.tool import CallFailed


def find_directories(
    location: str, workdir: str | None, checked: str | None = None
) -> tuple[Path, Path]:
    """The location and the working directory, with links followed. Raises CallFailed.

    The location must still lead to the directory that was checked, if one was.
    """
    try:
        root = Path(location).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise CallFailed(f"{NO_LOCATION}: {location}") from error
    if checked is not None and str(root) != checked:
        raise CallFailed(f"The session's directory leads elsewhere than a moment ago: {location}")
    try:
        directory = (root / (workdir or ".")).resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise CallFailed(f"No such working directory: {workdir} in {root}") from error
    if not directory.is_dir():
        raise CallFailed(f"The working directory is not a directory: {directory}")
    return root, directory


def open_working_directory(directory: Path) -> int:
    """Open the directory, so that a later rename cannot change it. Raises CallFailed."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if Path(f"/proc/self/fd/{descriptor}").readlink() == directory:
            return descriptor
        os.close(descriptor)
    except OSError as error:
        raise CallFailed(f"The working directory cannot be opened: {directory}") from error
    raise CallFailed(f"The working directory changed while it was opened: {directory}")
