"""The sandbox: a command in its own namespaces reaches its location and little else."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_service.config.configuration import ConfigError
from fairlead_tools.shell.seccomp import seccomp_filter
from fairlead_tools.shell.system_view import SystemView, open_system

PROGRAM: Final = "bwrap"
NETWORK: Final = ("/etc/resolv.conf", "/run/systemd/resolve", "/etc/gai.conf", "/etc/host.conf")
HOME: Final = "/tmp"  # noqa: S108 - private to each session
SHARED_MEMORY_BYTES: Final = 256 * 1024**2
CHECK_S: Final = 10.0
# Everything that the kernel can separate, and a terminal that a command cannot type into.
_SEPARATE: Final = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
# A command then cannot make namespaces of its own, in which it would be root.
_NO_NAMESPACES: Final = ("--unshare-user", "--disable-userns")


class SandboxUnavailable(ConfigError):
    """The sandbox does not work on this machine. Raised at the start; the message says why."""

    def __init__(self, reason: str) -> None:
        super().__init__("configuration", "tools.sandbox", reason)


class NotConfinable(Exception):
    """A directory that a sandbox cannot make writable without opening the whole machine."""


@dataclass(frozen=True, slots=True)
class SandboxPlace:
    """The directories of one sandboxed command."""

    location: Path
    directory: Path
    temporary: Path
    """Becomes `/tmp` of the command. Other sessions have another directory."""
    hidden: tuple[Path, ...] = ()
    """Directories that look empty to the command, also inside its location."""


@dataclass(frozen=True, slots=True)
class SandboxDescriptors:
    """The open files that the sandbox program needs: where it reports, its filter, the system."""

    status: int
    filter: int | None
    system: SystemView

    @property
    def all(self) -> tuple[int, ...]:
        filters = () if self.filter is None else (self.filter,)
        return (self.status, *filters, *self.system.descriptors)

    def has_run(self) -> bool:
        """Whether the sandbox was made and its command ran to an end."""
        lines = os.pread(self.status, 65_536, 0).splitlines()
        return any("exit-code" in json.loads(line) for line in lines)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Confines commands with bubblewrap."""

    program: str
    network: bool = False
    read: tuple[str, ...] = ()
    """More paths that commands may read."""
    inner_namespaces: bool = False
    """Whether a command may make namespaces, because this machine cannot forbid it."""

    def wrap(
        self, argv: Iterable[str], place: SandboxPlace, descriptors: SandboxDescriptors
    ) -> tuple[str, ...]:
        """The command line that runs a command inside: the location writable, the system readable.

        Raises NotConfinable.
        """
        if place.location == Path("/") or place.location.parts[1] in {"proc", "sys"}:
            raise NotConfinable(str(place.location))
        remove_mount_links(place)
        readable = (*self.read, *(NETWORK if self.network else ()))
        return (
            *(self.program, *_SEPARATE, *(() if self.inner_namespaces else _NO_NAMESPACES)),
            *(("--share-net",) if self.network else ()),
            *("--json-status-fd", str(descriptors.status)),
            *(() if descriptors.filter is None else ("--seccomp", str(descriptors.filter))),
            # Root in a namespace still owns the settings of the kernel below `/proc/sys`.
            *("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"),
            *("--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108
            *("--bind", str(place.temporary), HOME, *_second_temporary(place)),
            *descriptors.system.options,
            *(part for path in readable for part in ("--ro-bind-try", path, path)),
            *("--bind", str(place.location), str(place.location)),
            *_hide(place, (*descriptors.system.directories, *readable)),
            *("--setenv", "HOME", HOME, "--setenv", "TMPDIR", HOME),
            *("--remount-ro", "/", "--chdir", str(place.directory), "--", *argv),
        )


@contextmanager
def sandbox_descriptors() -> Iterator[SandboxDescriptors]:
    """The open files for one command. Each is read once, so every command needs its own."""
    program = seccomp_filter()
    with ExitStack() as stack:
        status = _open_memory(stack, "sandbox-status")
        filter_file = None
        if program is not None:
            filter_file = _open_memory(stack, "sandbox-filter")
            os.pwrite(filter_file, program, 0)
        yield SandboxDescriptors(status, filter_file, stack.enter_context(open_system()))


def _open_memory(stack: ExitStack, name: str) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


def prepare_sandbox(*, network: bool, read: tuple[str, ...]) -> Sandbox:
    """A sandbox that a test run has shown to work. Raises SandboxUnavailable."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise SandboxUnavailable(
            f'{PROGRAM} is not installed: install bubblewrap, or set it to "none"'
        )
    sandbox = Sandbox(program, network, read)
    reason = _try(sandbox)
    if reason is None:
        return sandbox
    lenient = Sandbox(program, network, read, inner_namespaces=True)
    if _try(lenient) is None:
        return lenient
    raise SandboxUnavailable(f"{program} cannot make a sandbox here: {reason}")


def _try(sandbox: Sandbox) -> str | None:
    """Why a sandbox does not work; None if it does."""
    # The directory is only a mount point here: nothing is written into it.
    here = Path("/usr")
    place = SandboxPlace(location=here, directory=here, temporary=here)
    with sandbox_descriptors() as descriptors:
        argv = sandbox.wrap(("/bin/sh", "-c", ":"), place, descriptors)
        try:
            trial = subprocess.run(  # noqa: S603
                argv,
                capture_output=True,
                timeout=CHECK_S,
                check=False,
                pass_fds=descriptors.all,
            )
        except subprocess.TimeoutExpired:
            return f"it did not answer in {CHECK_S:g} s"
        except OSError as error:
            return str(error)
        if trial.returncode == 0 and descriptors.has_run():
            return None
    return trial.stderr.decode(errors="replace").strip() or f"exit {trial.returncode}"


def remove_mount_links(place: SandboxPlace) -> None:
    """Remove links where the location is going to be mounted, if that is below the private `/tmp`.

    The session fills its `/tmp` itself. A link there could lead the sandbox program elsewhere.
    """
    if not place.location.is_relative_to(HOME):
        return
    inner = place.temporary
    for part in place.location.relative_to(HOME).parts:
        inner /= part
        if inner.is_symlink():
            inner.unlink()


def _second_temporary(place: SandboxPlace) -> tuple[str, ...]:
    """`/var/tmp` leads to `/tmp`, unless the location lies there and needs a directory to lie in."""
    second = "/var/tmp"  # noqa: S108
    return () if place.location.is_relative_to(second) else ("--symlink", HOME, second)


def _hide(place: SandboxPlace, readable: Iterable[str]) -> tuple[str, ...]:
    """Cover the hidden directories that the location or a readable path would show.

    The directories between the location and a hidden directory become mounts. A command could
    otherwise rename one of them, and the next command would find the hidden directory elsewhere.
    """
    shown = tuple(Path(path).resolve() for path in readable)
    outermost = [path for path in place.hidden if not set(path.parents) & set(place.hidden)]
    inside = [path for path in outermost if path.is_relative_to(place.location) and path.is_dir()]
    elsewhere = [path for path in outermost if any(map(path.is_relative_to, shown))]
    between = {
        above for path in inside for above in path.parents if place.location in above.parents
    }
    # A mount of an outer directory would show what a mount before it has covered.
    return (
        *(part for above in sorted(between) for part in ("--bind", str(above), str(above))),
        *(
            part
            for path in (*inside, *(path for path in elsewhere if path.is_dir()))
            for part in ("--tmpfs", str(path), "--remount-ro", str(path))
        ),
    )
