"""`bash` with real commands: their output, their limits, and no process left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import TextContent, ToolContent
from fairlead_service.config.configuration import Config
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.people.permission import Need
from fairlead_tools.builtin import builtins
from fairlead_tools.builtin.bash import NO_OUTPUT, BashInput, BashOutput, BashTool
from fairlead_tools.private_directory import open_private_directory
from fairlead_tools.registry.tool import CallContext, CallFailed, Result
from fairlead_tools.shell import command, scan
from fairlead_tools.shell.environment import command_environment
from fairlead_tools.spool import PREFIX

pytestmark = pytest.mark.integration

WAIT_S = 20.0


@dataclass
class ShellPlace:
    """A location where commands run, with their live output and reports."""

    path: Path
    settings: ToolsConfig = field(default_factory=ToolsConfig)
    output: list[str] = field(default_factory=list)
    reports: list[tuple[Any, tuple[ToolContent, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.private = open_private_directory(self.settings.spool_dir)
        self.bash = BashTool(self.settings, self.private)

    @property
    def context(self) -> CallContext:
        async def record_output(text: str) -> None:
            self.output.append(text)

        async def report(structured: Any, content: tuple[ToolContent, ...]) -> None:  # noqa: ANN401
            self.reports.append((structured, content))

        return CallContext(
            at=Address("default", f"ses_{self.path.name}"),
            location=LocationRef(directory=str(self.path)),
            agent="build",
            assistant_message_id="msg_a",
            call_id="call_1",
            worker="wkr_a",
            report=report,
            emit_output=record_output,
        )

    async def needs(self, line: str, **more: Any) -> tuple[Need, ...]:  # noqa: ANN401
        return await self.bash.needs(BashInput(command=line, **more), self.context)

    async def run(self, line: str, **more: Any) -> tuple[BashOutput, str, str]:  # noqa: ANN401
        """The output, the text and the status of a command."""
        result = await self.bash.run(BashInput(command=line, **more), self.context)
        assert isinstance(result.output, BashOutput)
        return result.output, *texts_of(result)


def texts_of(result: Result) -> tuple[str, str]:
    assert result.content is not None
    texts = [part.text for part in result.content if isinstance(part, TextContent)]
    if result.spool is not None:
        texts.insert(0, result.spool.read_bytes().decode(errors="replace"))
        result.spool.unlink()
    first, last = texts
    return first, last


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ShellPlace]:
    shell_place = ShellPlace(tmp_path, ToolsConfig(spool_dir=str(tmp_path / "private")))
    yield shell_place
    assert list(shell_place.private.spools.iterdir()) == [], "a spool was left"
    assert command.kill_marked(shell_place.context.key) == 0, "a process was left"


async def test_output_and_exit_code_come_back_together(place: ShellPlace) -> None:
    """L-54: a failing command is a successful call; both streams come in one text."""
    output, text, status = await place.run("echo out; echo err >&2; exit 3")

    assert output.model_dump(mode="json") == {"exit": 3, "truncated": False}
    assert (text, status) == ("out\nerr\n", "Exit code: 3")


async def test_a_command_without_output_says_so(place: ShellPlace) -> None:
    """L-57: a placeholder stands for the output."""
    assert await place.run("true") == (BashOutput(exit=0), NO_OUTPUT, "Exit code: 0")


async def test_a_killed_command_has_the_code_that_a_shell_gives_it(place: ShellPlace) -> None:
    """L-54: the code is 128 plus the signal; a missing shell gives 126."""
    output, _, _ = await place.run("kill -9 $$")
    assert output.exit == 128 + signal.SIGKILL

    place.bash = BashTool(
        place.settings.model_copy(update={"shell": "/no/such/shell"}), place.private
    )
    output, text, _ = await place.run("true")
    assert (output.exit, text) == (126, "/no/such/shell: No such file or directory\n")


async def test_it_runs_in_a_session_of_its_own_without_input(place: ShellPlace) -> None:
    """L-58: standard input is closed, and signals to the worker's group do not reach it."""
    place.bash = BashTool(place.settings.model_copy(update={"shell": "/bin/bash"}), place.private)
    _, text, _ = await place.run("cat; ps -o sid= -p $$; echo $$; echo $BASH")

    sid, pid, interpreter = text.split()
    assert (sid, interpreter) == (pid, "/bin/bash")
    assert int(sid) != os.getsid(0)


async def test_no_secret_of_the_service_is_in_its_environment(
    place: ShellPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-58: only listed variables are passed, and a setting adds more."""
    for name in ("FAIRLEAD_POSTGRES_DSN", "ACME_API_KEY", "EXTRA"):
        monkeypatch.setenv(name, "hush!")

    _, text, _ = await place.run("env")
    assert "hush!" not in text
    assert "PATH=" in text

    place.bash = BashTool(
        place.settings.model_copy(update={"environment": ("EXTRA",)}), place.private
    )
    _, text, _ = await place.run("env")
    assert text.count("hush!") == 1
    assert command_environment({}, ())["PATH"]


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ""},
        {"command": "true", "timeout": 0},
        {"command": "true", "timeout": 600_001},
        {"command": "true", "shell": "zsh"},
        {},
    ],
)
def test_input_beyond_its_bounds_is_refused(fields: dict[str, Any]) -> None:
    """L-50: the timeout is 120 seconds by default and 600 at most."""
    assert (BashInput(command="x").timeout, BashInput(command="x", timeout=600_000).timeout) == (
        120_000,
        600_000,
    )
    with pytest.raises(ValidationError):
        BashInput.model_validate(fields)


async def test_a_directory_outside_needs_its_own_permission_first(
    place: ShellPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """L-51: the command follows; an approval for always covers this command only."""
    outside = tmp_path_factory.mktemp("outside")
    (place.path / "sub").mkdir()

    (inside,) = await place.needs("make test", workdir="sub")
    external, need = await place.needs("make test", workdir=str(outside))

    assert (inside.action, inside.resources, inside.save) == (
        "bash",
        ("make test",),
        ("make test",),
    )
    assert (external.action, external.resources) == ("external_directory", (f"{outside}/*",))
    assert need.resources == inside.resources
    _, text, _ = await place.run("pwd", workdir=str(outside))
    assert text == f"{outside}\n"


async def test_a_directory_that_changed_after_its_approval_is_not_entered(
    place: ShellPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """L-53: a new link and an unapproved directory outside are both refused."""
    outside = tmp_path_factory.mktemp("outside")
    sub = place.path / "sub"
    sub.mkdir()
    await place.needs("touch here", workdir="sub")
    sub.rmdir()
    sub.symlink_to(outside)

    with pytest.raises(CallFailed, match="not the one that was approved"):
        await place.run("touch here", workdir="sub")
    with pytest.raises(CallFailed, match="not the one that was approved"):
        await place.run("touch here", workdir="..")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("workdir", ["missing", "file", "a\0b", "x" * 5000])
async def test_a_directory_that_is_none_is_refused(place: ShellPlace, workdir: str) -> None:
    """L-53: the error text is for the model."""
    (place.path / "file").write_text("x")

    with pytest.raises(CallFailed, match="directory"):
        await place.run("true", workdir=workdir)


async def test_an_outside_directory_with_a_star_in_its_name_is_never_approved_for_always(
    place: ShellPlace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """B7: the saved pattern would have covered the directories beside it."""
    outside = tmp_path_factory.mktemp("outside") / "a*"
    outside.mkdir()

    external, _ = await place.needs("true", workdir=str(outside))

    assert external.save == ()


async def test_a_missing_directory_is_named_in_full(place: ShellPlace) -> None:
    """D13: the message was `No such working directory: .`, whatever was missing."""
    with pytest.raises(CallFailed, match=f"^No such working directory: lost in {place.path}$"):
        await place.needs("true", workdir="lost")
    place.path = place.path / "gone"

    with pytest.raises(CallFailed, match=f"^The session's directory does not exist: {place.path}$"):
        await place.needs("true")


def test_paths_outside_are_named_and_nothing_more(place: ShellPlace) -> None:
    """L-52: the scan is advisory and skips devices, programs and paths inside."""
    inside = place.path
    line = (
        f"/usr/bin/cat {inside}/a /etc/passwd --file=/srv/x >/dev/null 2>/var/log/y {inside}/../z"
    )

    assert scan.outside_paths(line, inside) == (
        "/etc/passwd",
        "/srv/x",
        "/var/log/y",
        f"{inside}/../z",
    )
    assert scan.outside_paths("echo 'unclosed /etc/x", inside) == ("/etc/x",)


def test_the_search_for_paths_is_bounded() -> None:
    """B10: a command of 100 kB full of paths took seconds, and every other call waited."""
    paths = [f"/{number}" for number in range(20_000)]
    late = " ".join(("a" * scan.SEARCHED_LENGTH, "/etc/late"))

    assert scan.outside_paths(" ".join(paths)) == tuple(paths[: scan.PATHS_MAX])
    assert scan.outside_paths(late) == ()


async def test_paths_outside_only_warn(place: ShellPlace) -> None:
    """L-52: the command runs, and people and the model see the warning."""
    (need,) = await place.needs("cat /etc/hostname")
    output, _, status = await place.run("cat /etc/hostname")

    assert need.metadata is not None
    assert need.metadata["outside"] == ["/etc/hostname"]
    assert output.exit == 0
    assert "names paths outside its directory: /etc/hostname" in status


async def test_a_command_whose_time_is_over_keeps_what_it_said(place: ShellPlace) -> None:
    """L-56: the call succeeds with the output so far and advice."""
    output, text, status = await place.run("echo begun; sleep 60", timeout=1200)

    assert output.model_dump(mode="json") == {"truncated": False, "timeout": True}
    assert text == "begun\n"
    assert "set a longer timeout" in status


async def test_a_command_that_ignores_the_request_to_end_is_killed(place: ShellPlace) -> None:
    """L-58: the kill comes after three seconds and takes all its processes."""
    began = time.monotonic()
    output, text, _ = await place.run(
        "trap '' TERM; echo on; (trap '' TERM; sleep 60) & while :; do sleep 60; done", timeout=1200
    )

    assert (output.timeout, text.startswith("on\n")) == (True, True)
    assert time.monotonic() - began >= 3.0


@pytest.mark.parametrize(
    "line",
    [
        "SLEEP &",
        "(setsid SLEEP &) ; sleep 0.1",
        "setsid sh -c 'setsid SLEEP & setsid SLEEP &' ; sleep 0.1",
        "nohup env -i setsid SLEEP >/dev/null 2>&1 & sleep 0.1",
        "SLEEP & kill -STOP $!",
    ],
)
async def test_what_detaches_is_ended_with_its_command(place: ShellPlace, line: str) -> None:
    """L-59: a new session, an empty environment, a stop or an open pipe does not help."""
    # A unique duration, so that the test finds its own process.
    asleep = f"sleep 60.{os.getpid()}{abs(hash(line)) % 10_000}"
    async with asyncio.timeout(WAIT_S):
        output, _, _ = await place.run(line.replace("SLEEP", asleep))

    assert output.exit == 0
    assert count_processes(asleep) == 0


async def test_a_command_that_kills_its_supervisor_leaves_nothing_either(place: ShellPlace) -> None:
    """L-59: the mark of the call finds the remaining processes."""
    async with asyncio.timeout(WAIT_S):
        await place.run("setsid sleep 60 & kill -9 $PPID; sleep 60")

    assert command.kill_marked(place.context.key) == 0


async def test_a_cancelled_command_is_ended(place: ShellPlace) -> None:
    """L-58, E-16: an interrupt reaches the processes and not only the coroutine."""
    task = asyncio.create_task(place.run("echo begun; setsid sleep 60 & sleep 60"))
    async with asyncio.timeout(WAIT_S):
        while not place.output:
            await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_commands_of_a_killed_worker_end_with_it(tmp_path: Path) -> None:
    """L-58: the worker is killed with SIGKILL."""
    script = (
        "import asyncio, os\n"
        "from fairlead_tools.shell.command import ShellCommand, run_command\n"
        "async def heard(piece): print(piece.decode(), end='', flush=True)\n"
        f"fd = os.open({str(tmp_path)!r}, os.O_RDONLY)\n"
        "argv = ('/bin/sh', '-c', 'setsid sleep 60 & echo begun; sleep 60')\n"
        "asyncio.run(run_command(ShellCommand(argv, fd, dict(os.environ), 'killed', 50.0), heard))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"begun\n"
        worker.kill()
        worker.wait(10)
    deadline = time.monotonic() + WAIT_S
    while command.marked_processes("killed"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


async def test_output_is_heard_while_it_appears(place: ShellPlace) -> None:
    """E-28, E-29, L-59: the output is live, and progress has its size and its latest text."""
    await place.run("printf 'caf\\303'; sleep 0.2; printf '\\251\\n'")

    assert "".join(place.output) == "café\n"
    structured, (recent,) = place.reports[-1]
    assert (structured, recent) == ({"bytes": 6}, TextContent(text="café\n"))


async def test_a_flood_is_drained_and_keeps_its_end(place: ShellPlace) -> None:
    """L-55: the middle above the limit is dropped and counted, and the command ends normally."""
    settings = place.settings.model_copy(update={"spool_bytes_max": 1024 * 1024})
    place.bash = BashTool(settings, place.private)

    output, text, status = await place.run("head -c 30000000 /dev/zero | tr '\\0' x; echo the end")

    assert (output.exit, output.truncated) == (0, True)
    assert len(text) < 1024 * 1024 + 100
    assert text.endswith("x\nthe end\n" if "\n" in text[-9:-8] else "xthe end\n")
    dropped_bytes = 30_000_008 - 1024 * 1024
    assert f"[... {dropped_bytes:,} bytes dropped ...]" in text
    assert f"{dropped_bytes:,} bytes in the middle" in status


async def test_limits_hold_the_command(place: ShellPlace) -> None:
    """L-58: file size, memory and processor time, as configured."""
    limits = {"file_bytes_max": 1000, "memory_bytes_max": 64 * 1024 * 1024, "cpu_s_max": 1}
    place.bash = BashTool(place.settings.model_copy(update=limits), place.private)

    output, _, _ = await place.run("head -c 5000 /dev/zero > large")
    assert output.exit != 0
    assert (place.path / "large").stat().st_size == 1000
    output, _, _ = await place.run(f"{sys.executable} -c 'bytes(200_000_000)'")
    assert output.exit != 0
    output, _, _ = await place.run("while :; do :; done")
    assert output.exit == 128 + signal.SIGKILL


def test_it_never_runs_twice() -> None:
    """L-50, E-20: nobody knows the effects of a command."""
    (tool,) = (item for item in builtins(Config()) if item.name == "bash")

    assert (tool.retry, tool.permission) == ("once", "bash")
    assert tool.timeout_s > 600
    assert set(tool.info.input_schema["properties"]) == {"command", "workdir", "timeout"}


def test_spools_of_dead_workers_are_found_by_their_name(tmp_path: Path) -> None:
    """J-35: the next worker that starts removes them."""
    from fairlead_tools.spool import remove_stale_spools  # noqa: PLC0415

    dead = tmp_path / f"{PREFIX}4194999-x"
    own = tmp_path / f"{PREFIX}{os.getpid()}-x"
    other = tmp_path / "something"
    for spool in (dead, own, other):
        spool.touch()

    remove_stale_spools(tmp_path)

    assert (dead.exists(), own.exists(), other.exists()) == (False, True, True)


def count_processes(line: str) -> int:
    """The number of processes with this command line."""
    result = subprocess.run(["pgrep", "-fxc", line], capture_output=True, check=False)
    return int(result.stdout)
