"""The pure modules of the console in node: the fold over recorded streams, the parsers, the rows."""

import os
import shutil
from pathlib import Path
from subprocess import run

import pytest

HERE = Path(__file__).parent
STATIC = Path(__file__).parents[2] / "src/fairlead_gateway/console/static"
RECORDINGS = HERE / "recordings"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed: apt-get install nodejs")
def test_the_modules_of_the_console_keep_their_promises(tmp_path: Path) -> None:
    run_javascript_tests(tmp_path, RECORDINGS)


def run_javascript_tests(place: Path, recordings: Path) -> None:
    """Run all tests of the folder `javascript` in node, over these recordings."""
    assert NODE is not None
    # Node takes a file for a module if a package says so.
    shutil.copytree(STATIC, place / "static")
    (place / "static" / "package.json").write_text('{"type": "module"}')
    env = {**os.environ, "CONSOLE": str(place / "static"), "RECORDINGS": str(recordings)}
    tests = sorted(str(path) for path in (HERE / "javascript").glob("*.test.mjs"))
    done = run(
        [NODE, "--test", *tests],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
