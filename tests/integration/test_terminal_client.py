"""OpenCode's published terminal client drives a real stack, unchanged (WIRE-TUI)."""

import asyncio
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
import pytest_asyncio

from fairlead_testing.stack import Stack, stack

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(240),
]

PACKAGE, VERSION = "opencode-ai", "1.18.33"
PLATFORM = "opencode-linux-x64"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "fairlead-tests"
CONFIG = """
permissions = [ { action = "bash", resource = "*", effect = "ask" } ]
"""
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def up(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    install()
    place = tmp_path_factory.mktemp("terminal")
    for parent in (place, *place.parents[:2]):
        parent.chmod(0o755)
    config = place / "fairlead.toml"
    config.write_text(CONFIG)
    async with stack(place / "state", config=config, sim=True) as running:
        yield running


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


async def run_attached(up: Stack, home: Path, prompt: str, *arguments: str) -> str:
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
    assert client.returncode == 0, (out.decode(), err.decode())
    return out.decode()


async def test_run_prints_the_answer_and_goes_on_with_the_session(
    up: Stack, tmp_path: Path
) -> None:
    first = await run_attached(up, tmp_path, '[[sim: answer="first answer"]] go')
    second = await run_attached(up, tmp_path, '[[sim: answer="second answer"]] go', "-c")

    assert "first answer" in first
    assert "second answer" in second
    # What was printed before is not printed again.
    assert "first answer" not in second


@pytest.mark.slow
async def test_run_tells_each_step_of_a_tool_turn_as_json(up: Stack, tmp_path: Path) -> None:
    """A question of the model is answered for the client, because nobody can: it would hang."""
    asked = {"questions": [{"question": "Which?", "header": "Which", "options": []}]}
    script = f"[[sim: tool=question args='{json.dumps(asked)}' ; answer=\"all done\"]] go"
    lines = (await run_attached(up, tmp_path, script, "--format", "json")).splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]

    kinds = [event["type"] for event in events]
    assert kinds == ["step_start", "tool_use", "step_finish", "step_start", "text", "step_finish"]
    assert events[1]["part"]["state"]["status"] == "completed"
    assert "decide yourself" in str(events[1]["part"]["state"]["metadata"]["answers"])
    assert events[4]["part"]["text"] == "all done"


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


@pytest.mark.slow
async def test_a_person_works_in_the_terminal(up: Stack, tmp_path: Path) -> None:
    """Text, a tool with a permission, an interrupt, and a second session."""
    async with attached(up, tmp_path) as terminal:
        await terminal.wait_for("Ask anything")
        await terminal.type('[[sim: answer="hello from the sim"]] one')
        await terminal.wait_for("hello from the sim\n")

        await terminal.type(
            '[[sim: tool=bash args=\'{"command":"echo marker-$((40+2))"}\' ; answer=finished]] two'
        )
        await terminal.wait_for("Permission required")
        await terminal.press("Enter")
        await terminal.wait_for("marker-42")

        await terminal.type("[[sim: chunks=400 delay_ms=50]] three")
        await terminal.wait_for("esc interrupt")
        await terminal.press("Escape")
        await asyncio.sleep(0.3)
        await terminal.press("Escape")
        await terminal.wait_for("interrupted")

        await terminal.type("/new")
        await terminal.wait_for("Ask anything")
        await terminal.type('[[sim: answer="second session"]] four')
        await terminal.wait_for("second session\n")
