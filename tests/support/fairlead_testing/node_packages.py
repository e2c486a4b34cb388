"""Published packages of npm, each installed once on a machine."""

import fcntl
import os
import shutil
from pathlib import Path
from subprocess import run

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "fairlead-tests"


def install_package(package: str, version: str) -> Path:
    """The folder whose `node_modules` has the package. Skips where that is impossible."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node is not installed")
    folder = CACHE / f"{package.rpartition('/')[2]}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / package / "package.json").exists():
            (folder / "package.json").write_text('{"private": true}')
            command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = run(
                [*command, f"{package}@{version}"],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            if done.returncode:
                pytest.skip(f"npm cannot install {package}: {done.stderr[-300:]}")
    return folder
