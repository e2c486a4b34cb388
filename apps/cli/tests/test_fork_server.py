"""A service that the fork server starts is like one that was executed, and is up in a moment."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.embedded.child_process import ChildProcess, ProcessSpec, command_line
from fairlead_cli.embedded.fork_server.client import ForkClient, ForkedProcess
from fairlead_cli.embedded.fork_server.shown_start import ROOM_BYTES
from fairlead_cli.errors import ProcessFailed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process is executed"),
]

# It says what a process can see of itself, and then does what its argument says.
PROGRAM = """
import json, os, sys, time
about = {
    "name": __name__,
    "argv": sys.argv[1:],
    "cwd": os.getcwd(),
    "env": dict(os.environ),
    "parent": os.getppid(),
    "leads_session": os.getsid(0) == os.getpid(),
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd") if int(name) < 64)[:-1],
    "zone": time.tzname[0],
    "runner": "fairlead_runner.app" in sys.modules,
    "threads_of_server": len(os.listdir(f"/proc/{os.getppid()}/task")),
}
print(json.dumps(about), flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
sys.exit(int(sys.argv[1]))
"""


_numbers = count()


@dataclass(frozen=True)
class Place:
    """A fork server, and the program that it runs."""

    forks: ForkClient
    root: Path

    def spec(self, argument: str, **env: str) -> ProcessSpec:
        return ProcessSpec(
            argv=(sys.executable, "-m", "seen_program", argument),
            log=self.root / f"{next(_numbers)}.log",
            cwd=self.root,
            env=environment(self.root) | env,
        )


def environment(root: Path) -> dict[str, str]:
    """The variables with which programs find modules of this directory."""
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONPATH": str(root)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("forks")
    (root / "seen_program.py").write_text(PROGRAM)
    forks = ForkClient(root / "server.log", environment(root))
    yield Place(forks, root)
    forks.close()


async def about(spec: ProcessSpec) -> dict[str, Any]:
    """What the program has said of itself."""
    async with asyncio.timeout(60):
        while not (spec.log.exists() and spec.log.read_text().endswith("\n")):
            await asyncio.sleep(0.02)
    seen: dict[str, Any] = json.loads(spec.log.read_text())
    return seen


def shown_environment(pid: int) -> dict[str, str]:
    text = Path(f"/proc/{pid}/environ").read_text()
    return dict(line.split("=", 1) for line in text.rstrip("\0").split("\0"))


async def end(process: ChildProcess) -> int:
    process.kill()
    return await asyncio.wait_for(process.wait(), 30)


async def test_a_fork_is_like_a_process_that_was_executed(place: Place) -> None:
    spec = place.spec("wait", TZ="XYZ-3", PLANTED="für dich")
    process = await place.forks.spawn(spec)
    seen = await about(spec)

    assert isinstance(process, ForkedProcess)
    assert seen["name"] == "__main__"
    assert seen["argv"] == ["wait"]
    assert seen["cwd"] == str(place.root)
    assert seen["env"] == spec.env
    assert seen["leads_session"]
    assert seen["files"] == [0, 1, 2]
    assert seen["zone"] == "XYZ"
    assert seen["runner"], "everything is imported"
    assert seen["threads_of_server"] == 1, "a fork copies no thread"
    assert (command_line(process.pid) or "").split() == [*spec.argv]
    assert shown_environment(process.pid) == spec.env
    assert await end(process) == -signal.SIGKILL
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        process.kill()


async def test_the_exit_code_of_a_fork_is_reported(place: Place) -> None:
    processes = [await place.forks.spawn(place.spec(code)) for code in ("0", "3")]

    assert [await asyncio.wait_for(process.wait(), 30) for process in processes] == [0, 3]


async def test_a_process_that_no_fork_can_be_like_is_executed(place: Place) -> None:
    other_loader = place.spec("wait", LD_LIBRARY_PATH="/nowhere")
    large = place.spec("wait", PLANTED="x" * ROOM_BYTES)
    for spec in (other_loader, large):
        process = await place.forks.spawn(spec)
        seen = await about(spec)

        assert not isinstance(process, ForkedProcess)
        assert seen["parent"] == os.getpid()
        assert seen["env"] == spec.env
        await end(process)


async def test_forks_die_with_their_server_and_the_next_start_brings_another(place: Place) -> None:
    spec = place.spec("wait")
    first = await place.forks.spawn(spec)
    os.kill((await about(spec))["parent"], signal.SIGKILL)

    assert await asyncio.wait_for(first.wait(), 30) == -signal.SIGKILL
    async with asyncio.timeout(30):
        while command_line(first.pid) is not None:
            await asyncio.sleep(0.02)
    second = await place.forks.spawn(place.spec("wait"))
    assert isinstance(second, ForkedProcess)
    await end(second)


async def test_forks_die_with_the_parent_of_their_server(place: Place) -> None:
    script = f"""
import asyncio, os, sys
from pathlib import Path
from fairlead_cli.embedded.child_process import ProcessSpec
from fairlead_cli.embedded.fork_server.client import ForkClient
env = {environment(place.root)!r}
spec = ProcessSpec(
    (sys.executable, "-m", "seen_program", "wait"),
    Path({str(place.root / "child.log")!r}), Path("/"), env,
)
async def main():
    print((await ForkClient(Path({str(place.root / "other.log")!r}), env).spawn(spec)).pid, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    result = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    async with asyncio.timeout(30):
        while command_line(int(result.stdout)) is not None:
            await asyncio.sleep(0.02)


async def test_a_server_that_cannot_start_is_named_with_its_log(tmp_path: Path) -> None:
    (tmp_path / "pydantic.py").write_text("raise RuntimeError('planted')")
    forks = ForkClient(tmp_path / "server.log", environment(tmp_path))
    spec = Place(forks, tmp_path).spec("0")
    try:
        with pytest.raises(ProcessFailed, match=r"fork server .*planted.*server\.log"):
            await forks.spawn(spec)
    finally:
        forks.close()
