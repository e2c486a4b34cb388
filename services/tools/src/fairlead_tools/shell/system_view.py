"""The part of the system that a sandbox shows: programs, libraries and the configuration they read.

Each mount makes the start of a command slower. So links are made again, small files are copied, and
only the rest is mounted.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# No secrets: `/etc/ssl/private` for example is not shown.
PATHS: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"),
    *("/etc/alternatives", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs"),
    *("/etc/pki/ca-trust/extracted", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/protocols"),
    *("/etc/services", "/etc/mime.types", "/etc/magic", "/etc/os-release", "/etc/fonts"),
    "/etc/gitconfig",
)
# The limit on the size of files holds for the sandbox program too, so it copies small files only.
COPIED_BYTES_MAX: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class SystemView:
    """The options of the sandbox program, and the open files that they name."""

    options: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()

    @property
    def directories(self) -> tuple[str, ...]:
        """What is mounted: these trees show everything below them."""
        pairs = zip(self.options, self.options[1:], strict=False)
        return tuple(path for option, path in pairs if option == "--ro-bind")


@contextmanager
def open_system() -> Iterator[SystemView]:
    """The view for one command. The sandbox program reads each file once."""
    options: list[str] = []
    descriptors: list[int] = []
    try:
        for path in PATHS:
            with suppress(OSError):
                options += _show(path, descriptors)
        yield SystemView(tuple(options), tuple(descriptors))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _show(path: str, descriptors: list[int]) -> tuple[str, ...]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return ("--symlink", str(Path(path).readlink()), path)
    if stat.S_ISDIR(status.st_mode) or status.st_size > COPIED_BYTES_MAX:
        return ("--ro-bind", path, path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    descriptors.append(descriptor)
    return ("--perms", "0444", "--file", str(descriptor), path)
