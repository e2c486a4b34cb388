"""Plain words and small rooms: the naming rules of the house, and the shape of its folders."""

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT, modules, name, sources

FOLDER_MODULES_MAX = 16
SUBJECT_LENGTH_MAX = 72
# Commits up to this one were written before the rule, and a few were landed before it was a test.
RULE_BEGINS_AFTER = "9c3b635a7828a563434938c449b71693023fc4bb"
BEFORE_THE_TEST = {
    "73555be97d5db0887c46ee9b863103ed847144d8",
    "f0c7ee1819531f04befc2468821af2aa0b90c3b9",
    "5140deeca317cedd6b8ced07bdcd1d456b50375c",
    "6c236c2945a51a6a3eb097f32eb5c039d0caa363",
}

# Nouns of the trade that happen to end like a gerund.
GERUND_NOUNS = {"lowering", "pending", "pruning", "reasoning", "string"}
# Participles that are verbs in the imperative as well, or words of CONTEXT.md.
IMPERATIVES = {
    *("bound", "embed", "feed", "need", "put", "read", "run", "seed", "set", "shed", "speed"),
    *("split", "succeed"),
}
IRREGULAR = {
    *("begun", "bound", "broken", "brought", "built", "caught", "chosen", "cut", "done", "drawn"),
    *("found", "given", "gone", "heard", "held", "kept", "known", "laid", "left", "lost", "made"),
    *("met", "put", "read", "run", "said", "seen", "sent", "set", "shown", "spent", "split"),
    *("taken", "thrown", "told", "understood", "written"),
}
SUBJECT = re.compile(
    r"(feat|fix|docs|refactor|test|chore|perf|build|ci|style|bench|revert)(\([a-z,_-]+\))?: [a-z0-9A-Z`].*[^.]"
)


def is_participle(word: str) -> bool:
    """Whether a one-word name says what happened to a thing instead of what it does."""
    plain = word.strip("_")
    if plain in IMPERATIVES or "_" in plain or word.startswith("__"):
        return False
    return plain in IRREGULAR or plain.endswith("ed")


def function_names(path: Path) -> Iterator[tuple[int, str]]:
    """Every function and method of a module, except properties: these name a value."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            if not decorators & {"property", "cached_property"}:
                yield node.lineno, node.name


def test_modules_are_nouns() -> None:
    gerunds = [
        name(path)
        for path in sources()
        if path.stem.split("_")[-1].endswith("ing") and path.stem not in GERUND_NOUNS
    ]

    assert gerunds == []


def test_functions_say_what_they_do_or_return() -> None:
    participles = [
        f"{name(path)}:{line} {function}"
        for path in sources()
        for line, function in function_names(path)
        if is_participle(function)
    ]

    assert participles == []


@pytest.mark.parametrize(
    ("function", "verdict"),
    [("told", True), ("_settled", True), ("run", False), ("load_session", False), ("feed", False)],
)
def test_a_bare_participle_is_recognised(function: str, *, verdict: bool) -> None:
    assert is_participle(function) is verdict


def test_no_public_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name(path))

    assert {label: paths for label, paths in places.items() if len(paths) > 1} == {}


def test_no_folder_holds_more_modules_than_a_reader_overlooks() -> None:
    folders: dict[str, int] = defaultdict(int)
    for path in sources():
        folders[name(path.parent)] += not path.stem.startswith("__")

    assert {folder: n for folder, n in folders.items() if n > FOLDER_MODULES_MAX} == {}


def test_no_module_only_forwards_to_another() -> None:
    """A package may gather names that belong together; a module may not stand for another one."""
    forwarding = [
        name(path)
        for path in modules()
        if path.stem not in {"__init__", "conftest"} and not _statements(path)
    ]

    assert forwarding == []


def _statements(path: Path) -> list[ast.stmt]:
    """What a module does besides documenting itself and importing."""
    return [
        node
        for node in ast.parse(path.read_text()).body
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
        and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]


def test_commit_subjects_are_short_and_say_their_kind() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    if RULE_BEGINS_AFTER not in _git("rev-list", "HEAD").split():
        pytest.skip("this clone does not hold the commit after which the rule begins")
    commits = [
        line.partition(" ")
        for line in _git(
            "log", "--no-merges", "--format=%H %s", f"{RULE_BEGINS_AFTER}..HEAD"
        ).splitlines()
    ]

    wrong = [
        subject
        for commit, _space, subject in commits
        if commit not in BEFORE_THE_TEST
        and (len(subject) > SUBJECT_LENGTH_MAX or not SUBJECT.fullmatch(subject))
    ]

    assert wrong == []


def _git(*args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
