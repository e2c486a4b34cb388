"""The sandbox: a command in its own namespaces reaches its location and little else."""

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead_service.config.configuration import ConfigError

PROGRAM: Final = "bwrap"
# Programs, libraries and the system configuration that they read. No secrets.
SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"),
    *("/etc/alternatives", "/etc/ca-certificates", "/etc/ssl", "/etc/pki", "/etc/ld.so.cache"),
    *("/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone", "/etc/passwd"),
    *("/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/protocols", "/etc/services"),
    *("/etc/mime.types", "/etc/magic", "/etc/os-release", "/etc/fonts", "/etc/gitconfig"),
)
NETWORK: Final = ("/etc/resolv.conf", "/run/systemd/resolve", "/etc/gai.conf", "/etc/host.conf")
HOME: Final = "/tmp"  # noqa: S108 - private to each command
CHECK_S: Final = 10.0


class SandboxUnavailable(ConfigError):
    """The sandbox does not work on this machine. Raised at the start; the message says why."""

    def __init__(self, reason: str) -> None:
        super().__init__("configuration", "tools.sandbox", reason)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Confines commands with bubblewrap."""

    program: str
    network: bool = False
    read: tuple[str, ...] = ()
    """More paths that commands may read."""

    def wrap(self, argv: Iterable[str], *, location: Path, directory: Path) -> tuple[str, ...]:
        """The command line that runs a command inside: two directories writable, the system readable."""
        readable = (*SYSTEM, *self.read, *(NETWORK if self.network else ()))
        return (
            *(self.program, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"),
            *(("--share-net",) if self.network else ()),
            *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/var/tmp"),  # noqa: S108
            *(part for path in readable for part in ("--ro-bind-try", path, path)),
            *(part for path in (location, directory) for part in _bind("--bind", path)),
            *("--setenv", "HOME", HOME, "--setenv", "TMPDIR", HOME),
            *("--remount-ro", "/", "--chdir", str(directory), "--", *argv),
        )


def prepare_sandbox(*, network: bool, read: tuple[str, ...]) -> Sandbox:
    """A sandbox that a test run has shown to work. Raises SandboxUnavailable."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise SandboxUnavailable(
            f'{PROGRAM} is not installed: install bubblewrap, or set it to "none"'
        )
    sandbox = Sandbox(program, network, read)
    argv = sandbox.wrap(("/bin/sh", "-c", ":"), location=Path(HOME), directory=Path(HOME))
    try:
        trial = subprocess.run(argv, capture_output=True, timeout=CHECK_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise SandboxUnavailable(f"{program} did not answer in {CHECK_S:g} s") from None
    if trial.returncode != 0:
        reason = trial.stderr.decode(errors="replace").strip() or f"exit {trial.returncode}"
        raise SandboxUnavailable(f"{program} cannot make a sandbox here: {reason}")
    return sandbox


def _bind(option: str, path: Path) -> tuple[str, str, str]:
    return (option, str(path), str(path))
