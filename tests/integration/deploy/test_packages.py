"""The wheels of a release: they install without this repository, and the command works."""

import os
import shutil
import subprocess
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.tidy.release import find_problems, packages

ROOT = Path(__file__).parents[3]


def test_the_workspace_is_ready_for_a_release() -> None:
    assert find_problems() == []


def test_a_tag_that_does_not_fit_is_named_with_its_reason() -> None:
    problems = find_problems("v99.0.0")

    assert [each for each in problems if "the tag is v99.0.0" in each]


@pytest.mark.integration
@pytest.mark.timeout(300)
@pytest.mark.slow
def test_the_wheels_run_the_demo_in_a_clean_environment(tmp_path: Path) -> None:
    """`uv tool install fairlead` and pipx do the same with published wheels."""
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    wheels, venv, empty = tmp_path / "wheels", tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    build = [uv, "build", "--all-packages", "--wheel", "--quiet", "--out-dir", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True)
    names = {read_metadata(path)["Name"] for path in wheels.glob("*.whl")}
    assert names == {project["name"] for project in packages().values()}

    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run([uv, "venv", "--quiet", str(venv)], check=True, cwd=empty, env=env)
    install = [uv, "pip", "install", "--quiet", "--find-links", str(wheels), "fairlead"]
    subprocess.run(
        [*install, "--constraints", str(lock_constraints(uv, tmp_path))],
        cwd=empty,
        check=True,
        env={**env, "VIRTUAL_ENV": str(venv)},
    )
    demo = subprocess.run(
        [venv / "bin/fairlead", "demo"], cwd=empty, capture_output=True, text=True, check=False
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert not list(venv.glob("lib/*/site-packages/fairlead*.pth"))


def lock_constraints(uv: str, place: Path) -> Path:
    """The versions of others' packages that this release was tested with."""
    path = place / "constraints.txt"
    command = [uv, "export", "--locked", "--all-packages", "--no-dev", "--no-hashes", "--quiet"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    path.write_text("".join(f"{line}\n" for line in listed.splitlines() if "==" in line))
    return path


def read_metadata(wheel: Path) -> dict[str, str]:
    with ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return dict(Parser().parsestr(archive.read(name).decode()))
