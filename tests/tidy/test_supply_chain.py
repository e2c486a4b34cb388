"""The supply chain: images are pinned by digest, packages by hash, and a target lists them all."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")


def locked_packages() -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return packages


def test_every_image_that_we_build_from_is_pinned_by_digest() -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)", dockerfile, re.MULTILINE))
    stages = set(re.findall(r"^FROM \S+ AS (\w+)", dockerfile, re.MULTILINE))

    bases = set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) - stages

    images = [re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], base) for base in bases]
    assert images
    assert [image for image in images if not DIGEST.search(image)] == []


def test_every_locked_package_of_others_has_hashes() -> None:
    foreign = [package for package in locked_packages() if "registry" in package["source"]]

    assert len(foreign) > 50
    for package in foreign:
        files = [*package.get("wheels", []), package.get("sdist", {"hash": "sha256:none"})]
        assert all(file["hash"].startswith("sha256:") for file in files), package["name"]


def test_every_other_package_is_ours() -> None:
    ours = [package for package in locked_packages() if "registry" not in package["source"]]

    assert {package["name"].split("-")[0] for package in ours} == {"fairlead"}
    assert all(set(package["source"]) <= {"editable", "virtual"} for package in ours)


def test_the_bill_of_materials_lists_every_package_of_a_release(tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    if not Path(uv).exists():
        pytest.skip("uv is neither on PATH nor in .tools")
    target = (ROOT / "Makefile").read_text().split("\nsbom:")[1].split("\n\t")[1].split("\n")[0]
    command = target.replace("$(UV)", uv).replace("sbom.json", str(tmp_path / "sbom.json"))

    subprocess.run(command.split(), cwd=ROOT, check=True, capture_output=True)

    components = json.loads((tmp_path / "sbom.json").read_text())["components"]
    names = {component["name"] for component in components}
    assert {"pydantic", "nats-py", "psycopg", "fairlead-runner", "fairlead-gateway"} <= names
    assert not {"pytest", "mypy", "ruff"} & names
