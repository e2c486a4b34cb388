"""OpenCode's published terminal client, installed once on a machine, as a process and in a terminal."""

import asyncio
import fcntl
import os
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import run

import pytest

from fairlead_testing.stack import Stack

PACKAGE, VERSION = "opencode-ai", "1.18.33"
PLATFORM = "opencode-linux-x64"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "fairlead-tests"
WAIT_S = 60


def install() -> Path:
    """The client's binary, which is installed once on a machine. Skips where that is impossible."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node is not installed")
    folder = CACHE / f"terminal-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / "node_modules" / PLATFORM / "bin" / "opencode"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            (folder / "package.json").write_text('{"private": true}')
            command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = run(
                [*command, f"{PACKAGE}@{VERSION}"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
            if done.returncode or not binary.exists():
                pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr[-300:]}")
    return binary


def environment(up: Stack, home: Path) -> dict[str, str]:
    """A home of its own, and the key of the stack as the password."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "xterm-256color",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        **({} if up.up.token is None else {"OPENCODE_SERVER_PASSWORD": up.up.token}),
    }


async def run_attached(
    up: Stack, home: Path, prompt: str, *arguments: str, checked: bool = True
) -> str:
    """The output of `opencode run --attach`. The prompt is piped: the client quotes arguments."""
    client = await asyncio.create_subprocess_exec(
        str(install()),
        "run",
        "--attach",
        str(up.http.base_url).rstrip("/"),
        *arguments,
        cwd=home,
        env=environment(up, home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WAIT_S):
            out, err = await client.communicate(prompt.encode())
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()
    assert not checked or client.returncode == 0, (out.decode(), err.decode())
    return out.decode()


class Terminal:
    """A terminal with the client in it."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def tmux(self, *arguments: str) -> str:
        tmux = await asyncio.create_subprocess_exec(
            "tmux", "-L", self._name, *arguments, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await tmux.communicate()
        return out.decode()

    async def type(self, text: str) -> None:
        await self.tmux("send-keys", "-t", "0", "-l", text)
        await asyncio.sleep(0.3)
        await self.press("Enter")

    async def press(self, *keys: str) -> None:
        await self.tmux("send-keys", "-t", "0", *keys)

    async def press_until(self, text: str, key: str, *, absent: bool = False) -> None:
        """Press a key again until the screen shows a text, or no longer shows it.

        A busy terminal takes two keys for one, and a dialog takes no key in its first moment.
        """
        async with asyncio.timeout(WAIT_S):
            while (text in await self.screen()) is absent:
                await self.press(key)
                await asyncio.sleep(0.7)

    async def screen(self) -> str:
        return await self.tmux("capture-pane", "-p", "-t", "0")

    async def wait_for(self, text: str, *, absent: bool = False) -> str:
        """Wait until the screen shows a text, or no longer shows it."""
        screen = ""
        try:
            async with asyncio.timeout(WAIT_S):
                while (text in (screen := await self.screen())) is absent:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            pytest.fail(f"{text!r} {'stays' if absent else 'is not'} on the screen:\n{screen}")
        return screen


@asynccontextmanager
async def attached(up: Stack, home: Path, *arguments: str) -> AsyncIterator[Terminal]:
    """The terminal client, attached to the stack."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    terminal = Terminal(f"fairlead-{uuid.uuid4().hex[:8]}")
    variables = [f"{key}={value}" for key, value in environment(up, home).items()]
    url = str(up.http.base_url).rstrip("/")
    command = ["env", "-i", *variables, str(install()), "attach", url, *arguments]
    size = ("-x", "120", "-y", "40")
    await terminal.tmux("new-session", "-d", *size, "-c", str(home), *command)
    try:
        yield terminal
    finally:
        await terminal.tmux("kill-server")
