"""Attempts to leave the sandbox. Skipped where no sandbox can be made."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlead_service.config.sections import ToolsConfig
from fairlead_tools.builtin.bash import BashTool
from fairlead_tools.files.private import PRIVATE
from fairlead_tools.registry.tool import CallFailed
from fairlead_tools.shell.sandbox import (
    Sandbox,
    SandboxPlace,
    SandboxUnavailable,
    prepare_sandbox,
    sandbox_descriptors,
)
from services.tools.tests.shell.test_bash import ShellPlace

pytestmark = pytest.mark.integration

SECRET = "planted-secret"  # noqa: S105


@dataclass
class Cell:
    """A sandboxed location with a secret in every place that a command must not reach."""

    shell: ShellPlace
    outside: Path
    port: int

    async def run(self, script: str) -> str:
        """The output of a script that finds the places in its variables."""
        variables = f"OUTSIDE={self.outside} WORKER={os.getpid()} PORT={self.port}\n"
        _, text, _ = await self.shell.run(variables + script, timeout=60_000)
        return text


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    try:
        sandbox = prepare_sandbox(network=False, read=())
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    location, outside = tmp_path / "location", tmp_path / "outside"
    location.mkdir()
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    (location / "link").symlink_to(outside)
    monkeypatch.setenv("PLANTED", SECRET)
    monkeypatch.setenv("HOME", str(outside))
    monkeypatch.setattr("fairlead_tools.builtin.bash.PRIVATE", type(PRIVATE)())
    settings = ToolsConfig(spool_dir=str(tmp_path / "private"), processes_max=40)
    shell = ShellPlace(location, settings)
    shell.bash = BashTool(settings, shell.private, sandbox)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield Cell(shell, outside, listener.getsockname()[1])


ATTEMPTS = {
    "reads the home of the worker": "cat $OUTSIDE/secret ~/secret /root/.* /home/*/.*",
    "reads through a link in the location": "cat link/secret; ls link/",
    "reads the environment of the worker": "cat /proc/$WORKER/environ; strings /proc/*/environ",
    "reads the memory of the worker": "cat /proc/$WORKER/mem; head -c 100 /proc/$WORKER/maps",
    "reads its own environment": "env; cat /proc/self/environ",
    "reads through a root of another process": "cat /proc/1/root/$OUTSIDE/secret",
    "writes beside its location": "echo x > $OUTSIDE/made; echo x > ../made; mv secret ..",
    "writes through a link": "echo x > link/made; ln -s $OUTSIDE inner; echo x > inner/made",
    "writes into the system": "echo x > /usr/bin/made; echo x > /etc/made; echo x > /made",
    "makes a namespace": "unshare -Ur cat /proc/self/uid_map; unshare -m true && echo MOUNTED",
    "mounts": "mount -t tmpfs none /usr && echo MOUNTED; umount /usr && echo MOUNTED",
    "changes the kernel": "find /proc ! -path '/proc/[0-9]*' -type f -writable -printf 'OPEN %p '",
    "kills the worker": "kill -9 $WORKER && echo KILLED; kill -9 -1; true",
    "kills its parent": "kill -9 $PPID; kill -9 1; true",
}


@pytest.mark.parametrize("script", ATTEMPTS.values(), ids=ATTEMPTS.keys())
async def test_a_command_reaches_nothing_outside(cell: Cell, script: str) -> None:
    """B3, B5, B6, L-58: nothing outside the location is read, changed or ended."""
    text = await cell.run(script)

    assert SECRET not in text
    assert "MOUNTED" not in text
    assert "KILLED" not in text
    assert "OPEN" not in text
    assert [path.name for path in cell.outside.iterdir()] == ["secret"]
    assert not (cell.outside.parent / "made").exists()


CONNECT = (
    "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 2); print('IN')"
)


async def test_a_command_does_not_reach_the_loopback_of_the_host(cell: Cell) -> None:
    """B5: NATS, Postgres and the gateway listen there."""
    text = await cell.run(
        f'/usr/bin/python3 -c "{CONNECT}" $PORT; '
        'bash -c "echo > /dev/tcp/127.0.0.1/$PORT" && echo IN'
    )

    assert "IN\n" not in text


async def test_the_network_of_the_host_is_there_if_the_setting_asks_for_it(cell: Cell) -> None:
    """B5: the attempt above fails because of the sandbox and not by itself."""
    sandbox = cell.shell.bash.sandbox
    assert sandbox is not None
    cell.shell.bash.sandbox = Sandbox(sandbox.program, network=True)

    assert await cell.run('bash -c "echo > /dev/tcp/127.0.0.1/$PORT" && echo IN') == "IN\n"


async def test_each_session_has_a_temporary_directory_of_its_own(cell: Cell) -> None:
    """B6: it stays between the commands of a session, and no other session sees it."""
    assert await cell.run("echo mine > /tmp/note; echo $HOME $TMPDIR") == "/tmp /tmp\n"  # noqa: S108
    assert await cell.run("cat /tmp/note /var/tmp/note") == "mine\nmine\n"

    (cell.outside.parent / "second").mkdir()
    other = ShellPlace(cell.outside.parent / "second", cell.shell.settings)
    other.bash = cell.shell.bash
    _, text, _ = await other.run("ls -A /tmp; find / -name note 2>/dev/null")

    assert "note" not in text
    directory = cell.shell.private.session_directory(cell.shell.context.at)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "note").read_text() == "mine\n"


async def test_the_private_directory_is_empty_even_inside_the_location(cell: Cell) -> None:
    """B6: spools of other sessions cannot be read where the location contains them."""
    whole = cell.shell.path.parent
    shell = ShellPlace(whole, cell.shell.settings)
    shell.bash = cell.shell.bash
    (shell.private.spools / "other-session").write_text(SECRET)
    private = type(PRIVATE)()
    private.hide(shell.private.root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlead_tools.builtin.bash.PRIVATE", private)
        _, text, _ = await shell.run("find private; echo x > private/made; cat private/spools/*")

    assert SECRET not in text
    assert "other-session" not in text
    (shell.private.spools / "other-session").unlink()


async def test_a_hidden_directory_cannot_be_moved_away(cell: Cell) -> None:
    """B6: a command that renames a directory above it would show it to the next command."""
    hidden = cell.shell.path / "project/state"
    hidden.mkdir(parents=True)
    (hidden / "token").write_text(SECRET)
    (hidden / "inner").mkdir()
    private = type(PRIVATE)()
    private.hide(hidden, hidden / "inner")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlead_tools.builtin.bash.PRIVATE", private)
        await cell.run("mv project elsewhere; mv project/state state; touch project/made")
        text = await cell.run("cat */token */*/token")

    assert SECRET not in text
    assert (hidden / "token").exists()
    assert (hidden.parent / "made").exists()


async def test_a_hidden_directory_is_not_shown_by_a_readable_path(cell: Cell) -> None:
    """B6: operators install below `/opt`, and name more paths that commands may read."""
    tree = cell.outside.parent / "readable"
    (tree / "state").mkdir(parents=True)
    (tree / "state/token").write_text(SECRET)
    (tree / "open").write_text("readable")
    sandbox = cell.shell.bash.sandbox
    assert sandbox is not None
    cell.shell.bash.sandbox = Sandbox(sandbox.program, read=(str(tree),))
    private = type(PRIVATE)()
    private.hide(tree / "state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlead_tools.builtin.bash.PRIVATE", private)
        text = await cell.run(f"cat {tree}/open {tree}/state/token")

    assert "readable" in text
    assert SECRET not in text


async def test_a_location_below_the_second_temporary_directory_works(cell: Cell) -> None:
    """L-58: `/var/tmp` is a link in the sandbox, and a location may lie below it."""
    with TemporaryDirectory(dir="/var/tmp") as directory:
        shell = ShellPlace(Path(directory), cell.shell.settings)
        shell.bash = cell.shell.bash
        _, text, _ = await shell.run("touch made; pwd")

        assert text.strip() == directory
        assert (Path(directory) / "made").exists()


@pytest.mark.parametrize("workdir", ["..", "/", "/tmp", "link", "inner/../.."])  # noqa: S108
async def test_a_working_directory_outside_the_location_is_refused(
    cell: Cell, workdir: str
) -> None:
    """B5: the model must not choose what the sandbox makes writable."""
    (cell.shell.path / "inner").mkdir()

    with pytest.raises(CallFailed, match="outside the location"):
        await cell.shell.needs("touch made", workdir=workdir)
    with pytest.raises(CallFailed, match="outside the location"):
        await cell.shell.run("touch made", workdir=workdir)


async def test_a_working_directory_that_becomes_a_link_leads_nowhere(cell: Cell) -> None:
    """B5: the link is replaced between the permission and the run."""
    (cell.shell.path / "inner").mkdir()
    await cell.shell.needs("cat secret", workdir="inner")
    (cell.shell.path / "inner").rmdir()
    (cell.shell.path / "inner").symlink_to(cell.outside)

    with pytest.raises(CallFailed):
        await cell.shell.run("cat secret", workdir="inner")


async def test_the_root_of_the_file_system_is_no_location_for_a_sandbox(cell: Cell) -> None:
    """B5: the whole machine would be writable."""
    shell = ShellPlace(Path("/"), cell.shell.settings)
    shell.bash = cell.shell.bash

    with pytest.raises(CallFailed, match="cannot confine a command in /"):
        await shell.run("true")


async def test_a_daemon_ends_with_its_command(cell: Cell) -> None:
    """B12: a process that detaches, forgets its mark and kills its supervisor is ended too."""
    escape = (
        "env -i setsid sh -c 'while :; do date > beat; sleep 0.05; done' & sleep 0.3; kill -9 $PPID"
    )
    await cell.run(escape)
    beat = cell.shell.path / "beat"
    assert beat.exists(), "the daemon did run"
    before = beat.stat().st_mtime_ns

    await asyncio.sleep(0.3)

    assert beat.stat().st_mtime_ns == before


async def test_a_fork_bomb_is_ended(cell: Cell) -> None:
    """B11: the supervisor counts the processes, because the kernel does not count those of root."""
    # A bounded number: the kernel limits no processes of root, so a real bomb could stop the machine.
    output, _, status = await cell.shell.run("for i in $(seq 200); do sleep 30 & done; sleep 30")

    assert output.exit is None
    assert "too many processes" in status


async def test_output_without_end_ends_the_command(cell: Cell) -> None:
    """B11: the worker does not read for ever."""
    cell.shell.bash.settings = cell.shell.settings.model_copy(
        update={"command_output_bytes_max": 1_000_000}
    )
    output, _, status = await cell.shell.run("yes")

    assert output.exit is None
    assert "its output was too long" in status


TRACE = (
    "import ctypes; library = ctypes.CDLL(None, use_errno=True); "
    "print(library.ptrace(0, 0, 0, 0), ctypes.get_errno())"
)


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python in the sandbox")
async def test_debuggers_are_refused(cell: Cell) -> None:
    """B3: the filter of system calls refuses ptrace, also of its own children."""
    assert await cell.run(f'/usr/bin/python3 -c "{TRACE}"') == "-1 1\n"


async def test_shared_memory_is_bounded(cell: Cell) -> None:
    """B11: it is memory of the host that no limit of a process counts."""
    text = await cell.run("head -c 400M /dev/zero > /dev/shm/large; echo; touch /dev/made")

    assert "No space left on device" in text
    assert "Read-only file system" in text


async def test_a_sandbox_that_stops_working_fails_the_call(cell: Cell) -> None:
    """L-58: the command never runs without the sandbox that the worker started with."""
    cell.shell.bash.sandbox = Sandbox("/no/such/bwrap")
    with pytest.raises(CallFailed, match=r"could not run the command.*No such file"):
        await cell.shell.run("touch made")

    forbidden = cell.outside.parent / "bwrap"
    forbidden.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n")
    forbidden.chmod(0o755)
    cell.shell.bash.sandbox = Sandbox(str(forbidden))
    with pytest.raises(CallFailed, match="No permissions to create new namespace"):
        await cell.shell.run("touch made")

    assert not (cell.shell.path / "made").exists()


async def test_an_exit_code_of_a_command_is_not_taken_for_a_failure_of_the_sandbox(
    cell: Cell,
) -> None:
    """L-54: also the codes that the sandbox program and the supervisor use themselves."""
    for code in (1, 126, 127, 137):
        output, _, _ = await cell.shell.run(f"exit {code}")
        assert output.exit == code


async def test_the_temporary_files_of_a_purged_session_go(cell: Cell) -> None:
    """B6: also those whose rights the session took away."""
    private, at = cell.shell.private, cell.shell.context.at
    await cell.run("mkdir -p /tmp/a/b; touch /tmp/a/b/c; chmod 0 /tmp/a/b")

    private.remove_session(at)

    assert not (private.sessions / at.tenant / at.session_id).exists()


def test_an_unprivileged_user_is_confined_too(tmp_path: Path) -> None:
    """L-58: the sandbox needs no rights of root."""
    if os.getuid() != 0:
        pytest.skip("the other tests run as this user")
    try:
        sandbox = prepare_sandbox(network=False, read=())
    except SandboxUnavailable as reason:
        pytest.skip(str(reason))
    for path in (tmp_path, *tmp_path.parents[:3]):
        path.chmod(0o755)
    here = tmp_path / "location"
    here.mkdir()
    os.chown(here, 65534, 65534)
    place = SandboxPlace(location=here, directory=here, temporary=here)
    with sandbox_descriptors() as descriptors:
        argv = sandbox.wrap(("/bin/sh", "-c", "touch made; exit 7"), place, descriptors)
        process = subprocess.run(
            argv,
            check=False,
            capture_output=True,
            user=65534,
            group=65534,
            extra_groups=[],
            pass_fds=descriptors.all,
        )

    if b"No permissions" in process.stderr:
        pytest.skip("the kernel forbids user namespaces to users")
    assert process.returncode == 7, process.stderr
    assert (here / "made").exists()
