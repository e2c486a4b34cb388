"""Runs the JavaScript tests of the console in node."""

import os
import shutil
from pathlib import Path
from subprocess import run
from typing import Final

GATEWAY: Final = Path(__file__).parents[3] / "services/gateway"
STATIC: Final = GATEWAY / "src/fairlead_gateway/console/static"
TESTS: Final = GATEWAY / "tests/console"
RECORDINGS: Final = TESTS / "recordings"
NODE: Final = shutil.which("node")


def run_javascript_tests(place: Path, recordings: Path) -> None:
    """Run all tests of the folder `javascript` in node, over these recordings."""
    assert NODE is not None
    # Node takes a file for a module if a package says so.
    shutil.copytree(STATIC, place / "static")
    (place / "static" / "package.json").write_text('{"type": "module"}')
    env = {**os.environ, "CONSOLE": str(place / "static"), "RECORDINGS": str(recordings)}
    tests = sorted(str(path) for path in (TESTS / "javascript").glob("*.test.mjs"))
    done = run(
        [NODE, "--test", *tests],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
