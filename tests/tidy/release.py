"""Checks a release, and gives the workspace a new version: packages, their pins, images, jobs.

`make release` checks; `python -m tests.tidy.release --set 0.2.0` writes.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = re.compile(r"fairlead(-[a-z]+)?")
# Files besides the packages that name the release: images and the jobs of a release.
NAMED_IN = (
    "deploy/compose.yaml",
    "deploy/kubernetes",
    "tests/support/fairlead_testing/deploy_files.py",
)
NEEDED = (
    "description",
    "readme",
    "requires-python",
    "license",
    "authors",
    "keywords",
    "classifiers",
)


def packages() -> dict[Path, dict[str, Any]]:
    """The project table of every package of the workspace, by its file."""
    files = sorted(ROOT.glob("*/*/pyproject.toml"))
    return {path: tomllib.loads(path.read_text())["project"] for path in files}


def find_problems(tag: str | None = None) -> list[str]:
    """What keeps the workspace, or the tagged commit, from being a release."""
    projects = packages()
    versions = {project["version"] for project in projects.values()}
    if len(versions) != 1:
        return [f"the packages have different versions: {', '.join(sorted(versions))}"]
    [version] = versions
    problems = []
    for path, project in projects.items():
        name = path.relative_to(ROOT).parent
        problems += [f"{name}: no {field}" for field in NEEDED if not project.get(field)]
        problems += [f"{name}: {pin}" for pin in _loose_pins(project, version)]
    for path in _named_files():
        if other := set(_named_versions(path.read_text())) - {version}:
            problems.append(f"{path.relative_to(ROOT)}: names {', '.join(sorted(other))}")
    if tag is not None:
        problems += _tag_problems(tag, version)
    return problems


def set_version(version: str) -> None:
    """Write a version into every place that `find_problems` looks at, except the changelog."""
    for path in packages():
        text = re.sub(r'(?m)^version = "[^"]+"', f'version = "{version}"', path.read_text())
        pin = rf'"({OURS.pattern}(?:\[[a-z0-9,]+\])?)(?:==[^"]+)?"(?=[,\]])'
        head, mark, rest = text.partition("[tool.")
        path.write_text(re.sub(pin, rf'"\1=={version}"', head) + mark + rest)
    for path in _named_files():
        text = path.read_text()
        for old in set(_named_versions(text)):
            text = text.replace(old, version)
        path.write_text(text)


def _loose_pins(project: dict[str, Any], version: str) -> list[str]:
    """A package works with the packages of its own release."""
    wanted = [*project.get("dependencies", ())]
    for extra in project.get("optional-dependencies", {}).values():
        wanted += extra
    ours = [each for each in wanted if OURS.fullmatch(re.split(r"[\[=<>~!]", each)[0])]
    return [
        f"{each} is not pinned to {version}" for each in ours if not each.endswith(f"=={version}")
    ]


def _tag_problems(tag: str, version: str) -> list[str]:
    problems = [] if tag == f"v{version}" else [f"the tag is {tag}, the packages are {version}"]
    headings = re.findall(r"(?m)^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text())
    if version not in headings:
        problems.append(f"CHANGELOG.md has no section [{version}]")
    return problems


def _named_files() -> list[Path]:
    paths = [ROOT / name for name in NAMED_IN]
    return [
        file
        for path in paths
        for file in ([path] if path.is_file() else sorted(path.rglob("*.yaml")))
        if _named_versions(file.read_text())
    ]


def _named_versions(text: str) -> list[str]:
    patterns = (
        r"fairlead-[a-z]+:([0-9][\w.]*)",
        r"(?:provision|migrate)-([0-9][\w.]*)",
        r'RELEASE: Final = "([^"]+)"',
    )
    return [found for pattern in patterns for found in re.findall(pattern, text)]


def _tag_of_head() -> str | None:
    command = ["git", "describe", "--exact-match", "--tags", "HEAD"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", metavar="VERSION", help="write this version everywhere")
    parser.add_argument("--tag", help="check this tag too; default: the tag of HEAD")
    args = parser.parse_args()
    if args.set:
        set_version(args.set)
    tag = args.tag or _tag_of_head()
    problems = find_problems(tag)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    if not problems:
        sys.stdout.write(f"{tag or 'the workspace'} is ready for a release\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
