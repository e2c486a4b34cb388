"""What confines commands: the choice of a sandbox, its filter, and the limits that are on by default."""

import logging
import os
import struct
from pathlib import Path

import pytest

from fairlead_service.config.sections import ToolsConfig
from fairlead_tools.shell import sandbox
from fairlead_tools.shell.confinement import confine, find_confinement
from fairlead_tools.shell.sandbox import (
    Sandbox,
    SandboxDescriptors,
    SandboxPlace,
    SandboxUnavailable,
    remove_mount_links,
)
from fairlead_tools.shell.seccomp import ALLOW, RETURN, seccomp_filter
from fairlead_tools.shell.system_view import PATHS, SystemView, open_system

PLACE = SandboxPlace(Path("/w"), Path("/w/inner"), Path("/p/tmp"))


def test_without_a_sandbox_a_worker_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B3: `auto` runs without a sandbox only with a warning."""
    monkeypatch.setattr(sandbox, "PROGRAM", "no-such-program")
    with caplog.at_level(logging.WARNING):
        assert confine(ToolsConfig()) is None

    (record,) = caplog.records
    assert record.message.startswith("permissions are consent, not confinement")
    assert "install bubblewrap" in record.message
    assert "no sandbox" in find_confinement(ToolsConfig()).line
    with pytest.raises(SandboxUnavailable, match="is not installed"):
        find_confinement(ToolsConfig(sandbox="bwrap"))


def test_none_is_a_choice_and_is_said_too() -> None:
    """B3: people see in one line that nothing confines commands."""
    confinement = find_confinement(ToolsConfig(sandbox="none"))

    assert confinement.sandbox is None
    assert confinement.line.endswith('(tools.sandbox is "none")')


def test_only_the_location_and_the_private_tmp_are_writable() -> None:
    """B5: the working directory is no mount of its own."""
    argv = Sandbox("bwrap").wrap(("true",), PLACE, SandboxDescriptors(8, 9, SystemView()))

    binds = [argv[at + 1 : at + 3] for at, word in enumerate(argv) if word == "--bind"]
    assert binds == [("/p/tmp", "/tmp"), ("/w", "/w")]  # noqa: S108
    assert {"--new-session", "--disable-userns", "--unshare-all"} <= set(argv)
    assert "--share-net" not in argv


def test_a_link_in_the_private_tmp_does_not_move_the_location(tmp_path: Path) -> None:
    """B5: the session could leave the link there for its next command."""
    (tmp_path / "project").symlink_to("/etc")
    remove_mount_links(SandboxPlace(Path("/tmp/project/a"), Path("/tmp/project/a"), tmp_path))  # noqa: S108

    assert not (tmp_path / "project").is_symlink()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_program_that_ends_with_allow(machine: str) -> None:
    """B3: every jump stays inside the program."""
    program = seccomp_filter(machine)
    assert program is not None
    steps = list(struct.iter_unpack("=HBBI", program))

    assert steps[-1] == (RETURN, 0, 0, ALLOW)
    assert all(at + 1 + max(yes, no) < len(steps) for at, (_, yes, no, _) in enumerate(steps[:-1]))
    assert seccomp_filter("riscv64") is None


def test_every_limit_is_on_by_default() -> None:
    """B11: and zero switches a limit off."""
    settings = ToolsConfig()

    assert settings.sandbox == "auto"
    for name in ("cpu_s", "memory_bytes", "processes", "file_bytes", "open_files"):
        assert getattr(settings, f"{name}_max") > 0
        off = ToolsConfig.model_validate({f"{name}_max": 0})
        assert getattr(off, f"{name}_max") == 0
    assert settings.command_output_bytes_max > settings.spool_bytes_max


def test_the_system_is_shown_without_its_secrets() -> None:
    """L-58: only directories cost a mount; the open files are closed afterwards."""
    with open_system() as view:
        shown = set(view.options)
        assert all(os.fstat(descriptor) for descriptor in view.descriptors)

    assert "/usr" in shown
    assert not {"/etc", "/etc/ssl", "/etc/shadow", "/root", "/home", "/run", "/var"} & {
        *shown,
        *PATHS,
    }
    for descriptor in view.descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
