"""The house rules: what a reviewer would say every time, said once."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIGRATIONS = "services/projector/src/fairlead_projector/sql/migrations"

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
ADR_LINES_MAX = 80
FILE_BYTES_MAX = 500_000

BANNED_MODULES = {"utils", "helpers", "common", "misc", "stuff"}
KINDS = {
    ".mjs",  # The published client is a package for Node.
    *(".py", ".typed", ".sql", ".toml", ".lock", ".json", ".jsonl", ".sha256"),
    *(".md", ".txt", ".html", ".css", ".js", ".svg", ".png"),
    *(".yaml", ".conf", ".dockerignore"),
}
NAMES = {"Makefile", "Dockerfile", "LICENSE", ".gitignore", ".ci/run"}
IGNORED = {".git", ".venv", ".tools", ".fairlead", ".bench", "__pycache__", "dist"}
MARKERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
REGISTRIES = [
    ".".join(labels)
    for labels in (
        ("pypi", "org"),
        ("registry", "npmjs"),
        ("deb", "debian", "org"),
        ("files", "pythonhosted"),
    )
]


@cache
def tracked() -> list[Path]:
    """The files of the project: what git tracks, or what stands here without git."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        )
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not _ignored(path)]
    return sorted(path for path in paths if path.is_file())


def _ignored(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part in IGNORED or part.endswith(("_cache", ".egg-info")) for part in parts)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def modules() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py"]


def sources() -> list[Path]:
    return [path for path in modules() if "src" in path.relative_to(ROOT).parts]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of a module with its length."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield f"{name(path)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def test_there_is_a_project_to_look_at() -> None:
    assert sources()


def test_every_module_says_what_it_is() -> None:
    silent = [path for path in modules() if not ast.get_docstring(ast.parse(path.read_text()))]

    assert [name(path) for path in silent] == []


def test_no_file_carries_a_plan_in_a_marker() -> None:
    code = [path for path in tracked() if path.suffix in {".py", ".sql", ".toml", ".yaml", ".conf"}]
    marked = [
        f"{name(path)}:{number}"
        for path in code
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if MARKERS.search(line)
    ]

    assert marked == []


def test_no_source_file_tells_two_stories() -> None:
    lengths = {name(path): len(path.read_text().splitlines()) for path in sources()}

    assert {path: n for path, n in lengths.items() if n > FILE_LINES_MAX} == {}


def test_every_function_fits_a_screen() -> None:
    lengths = [length for path in sources() for length in functions(path)]

    assert [(where, n) for where, n in lengths if n > FUNCTION_LINES_MAX] == []


def test_modules_are_named_for_what_they_hold() -> None:
    vague = [
        path for path in modules() if BANNED_MODULES & {*path.relative_to(ROOT).parts, path.stem}
    ]

    assert [name(path) for path in vague] == []


def test_migrations_are_numbered_without_gaps() -> None:
    names = [path.name for path in tracked() if name(path.parent) == MIGRATIONS]

    assert names or not (ROOT / MIGRATIONS).exists()
    assert [file for file in names if not re.fullmatch(r"\d{4}_[a-z0-9_]+\.sql", file)] == []
    assert [int(file[:4]) for file in names] == list(range(1, len(names) + 1))


def adrs() -> list[Path]:
    return [path for path in tracked() if name(path.parent) == "docs/adr"]


def test_no_two_decisions_have_one_number() -> None:
    """Branches that are written at the same time reserve numbers, so there may be gaps for a while."""
    names = [path.name for path in adrs()]

    assert [file for file in names if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", file)] == []
    numbers = [int(file[:4]) for file in names]
    assert numbers == sorted(set(numbers))


def test_every_decision_has_a_status_and_fits_a_page() -> None:
    texts = {name(path): path.read_text() for path in adrs()}

    assert [
        document for document, text in texts.items() if not re.search(r"(?m)^\W*Status\b", text)
    ] == []
    assert [document for document, text in texts.items() if text.count("\n") > ADR_LINES_MAX] == []


def test_there_are_no_stray_kinds_of_file() -> None:
    stray = [
        name(path)
        for path in tracked()
        if path.suffix not in KINDS and not NAMES & {path.name, name(path)}
    ]

    assert stray == []


def test_no_file_is_a_blob() -> None:
    sizes = {name(path): path.stat().st_size for path in tracked() if path.name != "uv.lock"}

    assert {path: n for path, n in sizes.items() if n > FILE_BYTES_MAX} == {}


@pytest.mark.parametrize("host", REGISTRIES)
def test_no_file_names_a_registry(host: str) -> None:
    # The lock file is uv's own: it records where each wheel came from.
    files = [path for path in tracked() if path.name != "uv.lock"]

    assert [name(path) for path in files if host.encode() in path.read_bytes()] == []
