"""From a key to the first answer: the lines of the README, with the simulated provider behind them."""

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fairlead_cli.sim.app import SimSettings
from fairlead_cli.sim.server import serve
from fairlead_service.presets.preset import PRESETS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
KEY = "planted-provider-key"
SECTION = (ROOT / "README.md").read_text().partition("## With a real model\n")[2]
LINES = re.findall(r"(?m)^\$ (.+)$", SECTION.partition("\n## ")[0].partition("```\n")[0])


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[str]:
    """A simulated provider that knows one key."""
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = SimSettings(api_key=KEY)
    serving = serve("127.0.0.1", 0, ready=url.set_result, stop=stop, settings=settings)
    task = asyncio.create_task(serving)
    yield await url
    stop.set()
    await task


async def test_three_lines_lead_from_a_key_to_an_answer(provider: str, tmp_path: Path) -> None:
    key_line, up_line, prompt_line = LINES
    variable = key_line.removeprefix("export ").partition("=")[0]
    assert variable == PRESETS["anthropic"].key_env
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    env = {
        **clean,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        variable: KEY,
        "ANTHROPIC_BASE_URL": provider,
        "FAIRLEAD_GATEWAY_PORT": "0",
    }
    up = await _start(up_line, tmp_path, env)
    try:
        run_file = tmp_path / ".fairlead/run.json"
        async with asyncio.timeout(120):
            while not run_file.exists() and up.returncode is None:
                await asyncio.sleep(0.1)
        assert run_file.exists(), (await up.communicate())[0].decode()
        pids = json.loads(run_file.read_text())["services"]
        holders = {name for name, found in pids.items() if any(map(_has_key, found))}

        prompt = await _start(prompt_line, tmp_path, env)
        answer, _ = await asyncio.wait_for(prompt.communicate(), 60)
    finally:
        if up.returncode is None:
            up.send_signal(signal.SIGTERM)
        output, _ = await asyncio.wait_for(up.communicate(), 60)

    assert prompt.returncode == 0, answer.decode()
    assert b"Say hello" in answer
    assert holders == {"runner"}
    assert f"with the key in {variable}" in output.decode()
    assert KEY not in output.decode() + answer.decode()


async def _start(line: str, place: Path, env: dict[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *shlex.split(line, comments=True),
        cwd=place,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


def _has_key(pid: int) -> bool:
    return KEY.encode() in Path(f"/proc/{pid}/environ").read_bytes()
