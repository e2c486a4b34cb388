"""The README is the first test: every block it offers to run is run, in order, as a reader would."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from fairlead_testing.stack import Stack

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(420),
]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the README speaks to the API with curl")
async def test_every_block_of_the_readme_runs_against_a_fresh_stack(up: Stack) -> None:
    tools = Path(sys.executable).parent
    shell = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        "\n".join(BLOCKS),
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "FAIRLEAD_HTTP": up.up.http,
            "FAIRLEAD_TOKEN": up.up.token or "",
            "FAIRLEAD_NATS_URL": up.up.nats,
            "FAIRLEAD_NATS_NKEY_FILE": str(up.up.local_client.nkey_file),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(shell.communicate(), 400)

    assert BLOCKS
    assert shell.returncode == 0, output.decode()
    assert b"session.next.step.ended" in output
