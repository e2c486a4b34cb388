"""A spool: output that grows in a file up to a limit and always keeps its end."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "fairlead-spool-"
# The end of the output often says how a command went, so this much of it is always kept.
END_BYTES: Final = 64 * 1024
RECENT_BYTES: Final = 2 * 1024
PIECE_BYTES: Final = 64 * 1024


class Spool:
    """One output. Bytes beyond the limit are counted and dropped from the middle."""

    def __init__(self, directory: Path, bytes_max: int) -> None:
        descriptor, path = tempfile.mkstemp(prefix=f"{PREFIX}{os.getpid()}-", dir=directory)
        # Unbuffered, so that a full disk is noticed at once.
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._room = max(0, bytes_max - END_BYTES)
        self._end = bytearray()
        self._beyond = 0
        self.path = Path(path)
        self.bytes = 0
        self.recent = b""

    @property
    def dropped_bytes(self) -> int:
        """How many bytes were dropped."""
        return self._beyond - len(self._end[-END_BYTES:])

    def write(self, piece: bytes) -> None:
        """Add a piece. A full disk counts like the size limit."""
        self.bytes += len(piece)
        self.recent = (self.recent + piece)[-RECENT_BYTES:]
        fitting, rest = piece[: self._room], piece[self._room :]
        if fitting:
            rest = fitting[self._write_file(fitting) :] + rest
        if rest:
            self._beyond += len(rest)
            self._end += rest
            if len(self._end) > 2 * END_BYTES:
                del self._end[:-END_BYTES]

    def close(self) -> None:
        """Write the kept end behind the kept start. Nothing may be added after this."""
        if not self._file.closed:
            with suppress(OSError), self._file:
                if self.dropped_bytes:
                    self._file.write(f"\n[... {self.dropped_bytes:,} bytes dropped ...]\n".encode())
                self._file.write(self._end[-END_BYTES:])

    def remove(self) -> None:
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _write_file(self, piece: bytes) -> int:
        try:
            count = self._file.write(piece) or 0
        except OSError:
            count = 0
        self._room = self._room - count if count == len(piece) else 0
        return count


def read_pieces(path: Path) -> Iterator[bytes]:
    """The content of a file, piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def remove_stale_spools(directory: Path) -> None:
    """Delete the spools of dead workers, which a killed worker cannot do itself."""
    for path in directory.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with suppress(OSError):
                path.unlink()
