"""The reach of commands in a sandbox. Skipped where no sandbox can be made."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_service.config.sections import ToolsConfig
from fairlead_tools.builtin.bash import BashTool
from fairlead_tools.shell import sandbox
from fairlead_tools.shell.sandbox import Sandbox, SandboxUnavailable, prepare_sandbox
from services.tools.tests.shell.test_bash import ShellPlace

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def usable_sandbox() -> Sandbox:
    try:
        return prepare_sandbox(network=False, read=())
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def place(tmp_path: Path, usable_sandbox: Sandbox) -> ShellPlace:
    shell_place = ShellPlace(tmp_path, ToolsConfig(spool_dir=str(tmp_path / "private")))
    shell_place.bash = BashTool(shell_place.settings, shell_place.private, usable_sandbox)
    return shell_place


async def test_the_location_is_writable_and_the_system_is_not(place: ShellPlace) -> None:
    """L-58: files written in the location stay."""
    output, text, _ = await place.run("echo here > made && touch /usr/x; touch /x; touch /etc/x")

    assert output.exit != 0
    assert text.count("Read-only file system") == 3
    assert (place.path / "made").read_text() == "here\n"


async def test_homes_secrets_and_the_hosts_files_are_not_there(
    place: ShellPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """L-58: a command sees no other home or location, and has a private /tmp."""
    other = tmp_path_factory.mktemp("other")
    (other / "secret").write_text("x")

    output, text, _ = await place.run(
        f"ls -A /root /home; ls {other}; ls /etc/shadow; touch /tmp/left-by-sandbox; echo $HOME"
    )

    assert output.exit == 0
    assert text.count("No such file or directory") == 4
    assert text.endswith(f"{sandbox.HOME}\n")
    assert not await asyncio.to_thread(Path("/tmp/left-by-sandbox").exists)  # noqa: S108


async def test_there_is_no_network_unless_it_is_allowed(
    place: ShellPlace, usable_sandbox: Sandbox
) -> None:
    """L-58: a command has a loopback of its own only."""
    look = "cat /proc/net/dev | grep -c :"
    _, text, _ = await place.run(look)
    assert text == "1\n"

    open_ = Sandbox(usable_sandbox.program, network=True)
    place.bash = BashTool(place.settings, place.private, open_)
    _, text, _ = await place.run(look)
    lines = await asyncio.to_thread(Path("/proc/net/dev").read_text)
    assert int(text) == lines.count(":")


async def test_its_processes_are_alone_and_end_with_it(place: ShellPlace) -> None:
    """L-58, L-59: a namespace hides other processes, and none of its own survives."""
    output, text, _ = await place.run("setsid sleep 60 & ls /proc | grep -c '^[0-9]'; echo $$")

    visible, own = map(int, text.split())
    assert output.exit == 0
    assert visible < 10
    assert own != os.getpid()


async def test_a_sandboxed_command_that_ignores_everything_is_killed(place: ShellPlace) -> None:
    """L-58: the kill takes its namespace along."""
    output, text, _ = await place.run(
        "trap '' TERM; echo on; sleep 60 & wait; sleep 60", timeout=2000
    )

    assert (output.timeout, text.startswith("on\n")) == (True, True)


async def test_limits_hold_inside_too(place: ShellPlace, usable_sandbox: Sandbox) -> None:
    """L-58: the limits hold with and without a sandbox."""
    settings = place.settings.model_copy(update={"file_bytes_max": 100_000})
    place.bash = BashTool(settings, place.private, usable_sandbox)
    output, _, _ = await place.run("head -c 500000 /dev/zero > large")

    assert output.exit != 0
    assert (place.path / "large").stat().st_size == 100_000


def test_a_sandbox_that_cannot_be_made_is_said_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """L-58: a missing or refused sandbox is an error and never ignored."""
    monkeypatch.setattr(sandbox, "PROGRAM", "no-such-program")
    with pytest.raises(SandboxUnavailable, match="is not installed"):
        prepare_sandbox(network=False, read=())
    monkeypatch.setattr(sandbox, "PROGRAM", "false")
    with pytest.raises(SandboxUnavailable, match="cannot make a sandbox here: exit 1"):
        prepare_sandbox(network=False, read=())


def test_a_worker_that_cannot_confine_commands_does_not_start(tmp_path: Path) -> None:
    """L-58: the message names the setting and the reason."""
    env = {"PATH": str(tmp_path), "FAIRLEAD_TOOLS_SANDBOX": "bwrap"}

    process = subprocess.run(
        [sys.executable, "-m", "fairlead_tools"], env=env, capture_output=True, check=False
    )

    assert process.returncode == 1
    assert b"fairlead-tools: configuration: tools.sandbox: bwrap is not installed" in process.stderr
    assert b"Traceback" not in process.stderr
