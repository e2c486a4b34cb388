"""Exported files on this machine: which files are exports, and whether they can be used."""

from pathlib import Path
from typing import Final

from fairlead_cli.errors import CommandError
from fairlead_session.transfer.errors import ExportError
from fairlead_session.transfer.reader import file_lines
from fairlead_session.transfer.verification import ExportSummary, verify_export

_BEGIN: Final = b'{"fairlead":"export"'


def is_export(path: Path) -> bool:
    """Whether a file begins like an export. Raises CommandError."""
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGIN)) == _BEGIN
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error


def verify_file(path: Path) -> ExportSummary:
    """What an export holds. Raises CommandError with the line that cannot be used."""
    try:
        with path.open("rb") as file:
            return verify_export(file_lines(file))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from error
    except ExportError as error:
        raise CommandError(f"{path}: {error.fault}: {error}") from error
