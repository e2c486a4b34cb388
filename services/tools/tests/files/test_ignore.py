"""Ignore files mean the same to the finder as to git, at a bounded cost."""

import os
import shutil
import subprocess
import time
from contextlib import chdir, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead_tools.files.search.finder import FileFinder

GIT = shutil.which("git")
NO_CONFIG = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}
RULES = (
    *("*", "!*", "a", "!a", "/a", "a/", "!a/", "*.py", "!*.py", "b/*", "!b/*", "**/b", "!**/b"),
    *("a/**", "/*", "!/b", "a/**/b", ".d", "!.d", "[ab]", "[!a]", "e f", "e\\ f ", "# a", "\\#a"),
    *("", "a*", "*a*b*", "?", "!c.py", "/b/c.py", "b/a/", "!b/a", "**/a/**", "\\!a", "!", "*/b"),
)

names = st.sampled_from(["a", "b", "c.py", ".d", "e f", "ab", "#a", "!a"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
rules = st.lists(st.sampled_from(RULES), max_size=5).map("\n".join)


@pytest.mark.skipif(GIT is None, reason="git is not installed")
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    files=st.lists(paths, max_size=14),
    nested_rules=st.lists(st.tuples(paths, rules), max_size=3),
    top=rules,
)
def test_the_finder_and_git_ignore_the_same_files(
    files: list[str],
    nested_rules: list[tuple[str, str]],
    top: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """L-60."""
    root = tmp_path_factory.mktemp("tree")
    environment = {**os.environ, **NO_CONFIG}
    assert GIT is not None
    git = (GIT, "-C", str(root))
    subprocess.run([*git, "init", "-q", "--template="], env=environment, check=True)
    texts = [(".gitignore", top), *((name, "x\n") for name in files)]
    for name, text in (*texts, *((f"{path}/.gitignore", text) for path, text in nested_rules)):
        # A generated file and a generated directory may have the same path.
        with suppress(OSError):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    command = [*git, "ls-files", "--others", "--exclude-standard", "-z"]

    git_output = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    with chdir(root):
        files_found = list(FileFinder(hidden=True).files())

    assert sorted(files_found) == sorted(name for name in git_output.decode().split("\0") if name)


@pytest.mark.parametrize(
    "rule",
    ["*a" * 100 + "b", "**/a/" * 50 + "b", "[ab]*" * 90 + "c", "?*" * 150 + "b", "**/*a*" * 40],
)
def test_a_hostile_rule_costs_no_more_than_its_length(tmp_path: Path, rule: str) -> None:
    """L-60: a backtracking matcher would try every split of every name."""
    (tmp_path / ".gitignore").write_text(f"{rule}\n" * 20)
    deep = tmp_path.joinpath(*("a" * 250 for _ in range(8)))
    deep.mkdir(parents=True)
    for number in range(20):
        (deep / f"{'a' * 240}{number}").touch()

    start = time.process_time()
    with chdir(tmp_path):
        count = sum(1 for _ in FileFinder(hidden=False).files())

    assert time.process_time() - start < 5
    assert count in {0, 20}
