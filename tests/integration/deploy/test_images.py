"""The steps of the Dockerfile, replayed in an empty Debian: what a build makes starts.

There is no container engine here. `debootstrap` makes the root that stands for the base image.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fairlead_testing.dockerfile import Image, Replay, Stage, context_files, read_stages

ROOT = Path(__file__).parents[3]
PACKAGES = ("python3", "python3-pip", "ca-certificates")
# Where this machine finds packages, and whom it trusts: a build has the same.
SOURCES = ("etc/apt", "etc/ssl/certs/ca-certificates.crt", "etc/resolv.conf", "etc/pip.conf")


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    return read_stages((ROOT / "deploy/Dockerfile").read_text())


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh Debian with the Python of the base image."""
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        pytest.skip("needs root and debootstrap: apt-get install debootstrap")
    root = tmp_path_factory.mktemp("image") / "debian"
    command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm"]
    subprocess.run([*command, str(root)], check=True, stdout=subprocess.DEVNULL)
    for path in SOURCES:
        source, target = Path("/", path), root / path
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy2(source, target)
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    for name in ("python3.11", "python3", "python"):
        (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3.11")
    return root


def test_every_stage_runs_as_nobody_special_under_an_init(stages: dict[str, Stage]) -> None:
    images = stages.keys() - {"build", "base"}

    assert images == {"cli", "tools", "service"}
    for name in images:
        assert stages[name].base == "base"
        assert ("USER", "10001:10001") in [(step.word, step.text) for step in stages[name].steps]
    words = {step.word: step.text for step in stages["base"].steps}
    for name in ("build", "base"):
        assert re.fullmatch(r"python:3\.11-slim@sha256:[0-9a-f]{64}", stages[name].base)
    assert words["ENTRYPOINT"] == '["tini", "--", "start"]'
    assert "/readyz" in words["HEALTHCHECK"]


def test_the_context_of_a_build_has_the_packages_and_no_tests() -> None:
    names = {str(path) for path in context_files(ROOT)}

    assert {"uv.lock", "libs/schema/pyproject.toml"} <= names
    assert not [name for name in names if "/tests/" in name]
    ignored = (ROOT / "deploy/Dockerfile.dockerignore").read_text().split()
    allowed = [f"!{name}" for name in ("pyproject.toml", "uv.lock", "libs", "services", "apps")]
    assert ignored == ["*", *allowed, "**/tests", "**/__pycache__"]


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("stage", "service"), [("tools", "tools"), ("service", "gateway"), ("cli", "cli")]
)
def test_the_steps_of_an_image_give_a_service_that_starts(
    stages: dict[str, Stage], debian: Path, tmp_path: Path, stage: str, service: str
) -> None:
    """C5: the tools image had no bubblewrap, ripgrep and git."""
    replay = Replay(stages, debian, ROOT, tmp_path, {"SERVICE": service})

    image = replay.build(stage)

    assert image.user == "10001:10001"
    programs = {"tools": ("bwrap", "rg", "git")}.get(service, ())
    for program in (*programs, "tini", "start"):
        assert image.run("which", program).returncode == 0, program
    assert image.run("touch", "/opt/fairlead/x").returncode != 0
    assert image.run("touch", "/var/lib/fairlead/secrets/x", "/srv/workspaces/x").returncode == 0
    assert_it_starts(image, service)


def assert_it_starts(image: Image, service: str) -> None:
    """The command says what it can do; a service says in one line which dependency it misses."""
    if service == "cli":
        ran = image.run(*image.entrypoint, "--help")
        assert "provision" in ran.stdout, ran.stderr
        return
    env = {"FAIRLEAD_NATS_URL": "nats://127.0.0.1:9", "FAIRLEAD_AUTH_MODE": "open"}
    ran = image.run("timeout", "--signal=TERM", "20", *image.entrypoint, env=env)
    assert "NATS at nats://127.0.0.1:9 cannot be reached" in ran.stderr, ran.stderr
    assert "Application shutdown complete" in ran.stderr
