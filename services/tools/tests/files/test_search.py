"""`glob` and `grep` give the same with and without ripgrep, within limits."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead_session.calls.lifecycle import Failed, Succeeded
from fairlead_session.people.permission import Need
from fairlead_tools.builtin import glob, grep
from fairlead_tools.files.search import search
from fairlead_tools.files.search.finder import FileFinder
from fairlead_tools.files.search.search import COMMON, SearchEngine
from services.tools.tests.file_calls import (
    call_context,
    failure_of,
    required_permissions,
    run_call,
    text,
    try_call,
)

RG = shutil.which("rg")
PROGRAM = pytest.param(
    SearchEngine(RG),
    id="rg",
    marks=pytest.mark.skipif(RG is None, reason="ripgrep is not installed"),
)
OWN = pytest.param(SearchEngine(None), id="own")


@pytest.fixture(params=[PROGRAM, OWN])
def engine(request: pytest.FixtureRequest) -> SearchEngine:
    search_engine = request.param
    assert isinstance(search_engine, SearchEngine)
    return search_engine


def plant(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


async def find_files(engine: SearchEngine, root: Path, **fields: Any) -> list[str]:  # noqa: ANN401
    result = await run_call(glob.tool(engine), root, **fields)
    return [item["path"] for item in result.structured["value"]]


async def find_lines(engine: SearchEngine, root: Path, **fields: Any) -> list[tuple[str, int, str]]:  # noqa: ANN401
    result = await run_call(grep.tool(engine), root, **fields)
    return [(item["path"], item["line"], item["text"]) for item in result.structured["value"]]


TREE = {
    ".git/config": "needle",
    ".gitignore": "*.log\nbuild/\n/top.txt\n!keep.log\n",
    ".hidden/a.py": "needle",
    "a.py": "x\nneedle here\n",
    "b.log": "needle",
    "build/out.py": "needle",
    "keep.log": "needle",
    "src/.gitignore": "!*.log\ngen/*.py\n!gen/kept.py\n",
    "src/app.py": "no\n",
    "src/c.log": "needle",
    "src/gen/kept.py": "needle",
    "src/gen/made.py": "needle",
    "src/top.txt": "needle",
    "top.txt": "needle",
    "vendor/.ignore": "*\n",
    "vendor/d.py": "needle",
}


async def test_searching_needs_permission_on_the_pattern(tmp_path: Path) -> None:
    """L-60, L-62: each tool has its own action."""
    assert await required_permissions(glob.tool(), tmp_path, pattern="*.py") == (
        Need("glob", ("*.py",), ("*",), {"path": "."}),
    )
    assert await required_permissions(grep.tool(), tmp_path, pattern="a+") == (
        Need("grep", ("a+",), ("*",), {"path": "."}),
    )
    assert glob.tool().retry == grep.tool().retry == "pure"


async def test_files_are_found_but_hidden_and_ignored_ones(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """L-60: nested ignore files and their exceptions count; `.git` is never searched."""
    plant(tmp_path, TREE)

    assert await find_files(engine, tmp_path, pattern="**") == [
        "a.py",
        "keep.log",
        "src/app.py",
        "src/c.log",
        "src/gen/kept.py",
        "src/top.txt",
    ]
    assert await find_files(engine, tmp_path, pattern="*.py") == [
        "a.py",
        "src/app.py",
        "src/gen/kept.py",
    ]
    assert await find_files(engine, tmp_path, pattern="src/*.{py,txt}") == [
        "src/app.py",
        "src/top.txt",
    ]
    assert await find_files(engine, tmp_path, pattern="**/g?n/[!a]*.py") == ["src/gen/kept.py"]


async def test_a_pattern_does_not_open_what_is_ignored(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """L-60: the ignored file stays hidden even when the pattern names it."""
    plant(tmp_path, TREE)

    assert await find_files(engine, tmp_path, pattern="b.log") == []
    assert await find_files(engine, tmp_path, pattern=".hidden/*") == []


async def test_a_search_below_obeys_the_ignore_files_above(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """L-60: ignore files count up to the root of the repository."""
    plant(
        tmp_path, {**TREE, "src/deep/e.log": "", "src/deep/top.txt": "", "x/e.log": "", "x/f": ""}
    )

    assert await find_files(engine, tmp_path, pattern="*", path="src/deep") == [
        "src/deep/e.log",
        "src/deep/top.txt",
    ]
    assert await find_files(engine, tmp_path, pattern="*", path="x") == ["x/f"]


async def test_paths_are_absolute_for_the_model_and_relative_in_the_structure(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """L-61, L-66: results are a list under `value`; an empty result has a fixed text."""
    plant(tmp_path, {"sub/a.py": "", "sub/b.py": ""})

    result = await run_call(glob.tool(engine), tmp_path, pattern="*.py", path="sub")
    nothing = await run_call(glob.tool(engine), tmp_path, pattern="*.rs")

    assert result.structured == {
        "value": [{"path": "sub/a.py"}, {"path": "sub/b.py"}],
        "truncated": False,
    }
    assert text(result) == f"{tmp_path}/sub/a.py\n{tmp_path}/sub/b.py"
    assert nothing.structured == {"value": [], "truncated": False}
    assert text(nothing) == "No files found"


async def test_lines_are_found_in_hidden_files_too(engine: SearchEngine, tmp_path: Path) -> None:
    """L-62, L-66: `.git` and ignored files stay out."""
    plant(tmp_path, TREE)

    assert await find_lines(engine, tmp_path, pattern="^need") == [
        (".hidden/a.py", 1, "needle"),
        ("a.py", 2, "needle here"),
        ("keep.log", 1, "needle"),
        ("src/c.log", 1, "needle"),
        ("src/gen/kept.py", 1, "needle"),
        ("src/top.txt", 1, "needle"),
    ]
    assert await find_lines(engine, tmp_path, pattern="needle", include="*.py") == [
        (".hidden/a.py", 1, "needle"),
        ("a.py", 2, "needle here"),
        ("src/gen/kept.py", 1, "needle"),
    ]
    inside = await find_lines(engine, tmp_path, pattern="needle", include="src/*.{txt,log}")
    assert [path for path, _, _ in inside] == ["src/c.log", "src/top.txt"]


async def test_one_file_is_searched_even_if_it_is_ignored(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """L-62: the caller named the file."""
    plant(tmp_path, TREE)

    assert await find_lines(engine, tmp_path, pattern="n", path="b.log") == [("b.log", 1, "needle")]
    assert await find_lines(engine, tmp_path, pattern="n", path="src/app.py") == [
        ("src/app.py", 1, "no")
    ]


async def test_a_match_says_where_it_is(engine: SearchEngine, tmp_path: Path) -> None:
    """L-62, L-63: a match has its line, its offset, and byte ranges of the matching parts."""
    (tmp_path / "a.txt").write_bytes("é\r\nfoo é foo\r\n".encode())

    result = await run_call(grep.tool(engine), tmp_path, pattern="foo|é")

    assert result.structured["value"][1] == {
        "path": "a.txt",
        "line": 2,
        "offset": 4,
        "text": "foo é foo",
        "submatches": [
            {"text": "foo", "start": 0, "end": 3},
            {"text": "é", "start": 4, "end": 6},
            {"text": "foo", "start": 7, "end": 10},
        ],
    }
    assert text(result) == f"Found 2 lines\n\n{tmp_path}/a.txt:\n  1: é\n  2: foo é foo"


async def test_previews_and_parts_are_bounded(engine: SearchEngine, tmp_path: Path) -> None:
    """L-63: a preview has 2000 whole characters, and at most 100 parts."""
    (tmp_path / "a.txt").write_text("x" * 500 + "𝄞" * 3000)

    result = await run_call(grep.tool(engine), tmp_path, pattern="x")

    (line,) = result.structured["value"]
    assert line["text"] == "x" * 500 + "𝄞" * 1500
    assert len(line["submatches"]) == 100


async def test_a_record_that_is_too_long_fails_the_search(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """L-63: a match has at most 64 KiB."""
    (tmp_path / "a.txt").write_text("x" * 70_000)

    message = await failure_of(grep.tool(engine), tmp_path, pattern="^x")

    assert message == "Unable to search .: a match is longer than 64 KiB"


async def test_what_is_no_text_is_not_searched(engine: SearchEngine, tmp_path: Path) -> None:
    """L-62: a zero byte near the start marks a binary file; other encodings count as text."""
    (tmp_path / "a.bin").write_bytes(b"needle\n\0\n")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9 needle\n")

    assert await find_lines(engine, tmp_path, pattern="needle") == [
        ("b.txt", 1, "caf\ufffd needle")
    ]


@pytest.mark.parametrize("pattern", ["(", "[", "a{2,1}", "(?=x)", r"(a)\1", "a\nb", r"a\nb", "*"])
async def test_a_bad_pattern_is_its_own_error(
    engine: SearchEngine, tmp_path: Path, pattern: str
) -> None:
    """L-64: a bad pattern never gives a partial result."""
    (tmp_path / "a.txt").write_text("x(=a")

    message = await failure_of(grep.tool(engine), tmp_path, pattern=pattern)

    assert message == f"Invalid regular expression: {pattern}"


@pytest.mark.parametrize("pattern", ["{a", "[b-a]", "{a,b}" * 8])
async def test_a_bad_glob_is_its_own_error(tmp_path: Path, pattern: str) -> None:
    """L-60, L-62: the error precedes the permission ask."""
    message = f"Invalid pattern: {pattern}"

    assert await failure_of(glob.tool(), tmp_path, pattern=pattern) == message
    assert await failure_of(grep.tool(), tmp_path, pattern="x", include=pattern) == message


def fake_program(tmp_path: Path, *records: object, ending: str) -> SearchEngine:
    """A search program that prints these records and then runs the ending."""
    program = tmp_path / "program"
    lines = "".join(f"print({json.dumps(json.dumps(record))})\n" for record in records)
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{lines}sys.stdout.flush()\n{ending}")
    program.chmod(0o755)
    return SearchEngine(str(program), limit_s=3.0)


def match(name: str, line: str) -> dict[str, object]:
    data = {
        "path": {"text": f"./{name}"},
        "lines": {"text": line},
        "line_number": 1,
        "absolute_offset": 0,
        "submatches": [],
    }
    return {"type": "match", "data": data}


async def test_errors_beside_results_make_a_partial_search(tmp_path: Path) -> None:
    """L-64: without results the search fails."""
    here = plant(tmp_path / "here", {"a.txt": "x\n"})

    partly = fake_program(tmp_path, match("a.txt", "x\n"), ending="sys.exit(2)")
    result = await run_call(grep.tool(partly), here, pattern="x")
    assert len(result.structured["value"]) == 1
    assert result.structured["truncated"] is True

    nothing = fake_program(tmp_path, ending="sys.exit(2)")
    assert await failure_of(grep.tool(nothing), here, pattern="x") == (
        "Unable to search .: it cannot be read"
    )


async def test_what_the_program_says_is_confirmed(tmp_path: Path) -> None:
    """L-05, L-65: lines of a changed file or behind a link are left out of the result."""
    here = plant(tmp_path / "here", {"a.txt": "mine\n", "b.txt": "changed\n"})
    plant(tmp_path, {"secret.txt": "secret\n", "dir/secret.txt": "secret\n"})
    (here / "link").symlink_to(tmp_path / "secret.txt")
    (here / "dir").symlink_to(tmp_path / "dir")
    records = [
        match("a.txt", "mine\n"),
        match("b.txt", "before\n"),
        match("link", "secret\n"),
        match("dir/secret.txt", "secret\n"),
    ]
    engine = fake_program(tmp_path, *records, ending="")

    assert await find_lines(engine, here, pattern="x") == [("a.txt", 1, "mine")]


async def test_a_search_stops_at_its_limit(engine: SearchEngine, tmp_path: Path) -> None:
    """L-65: a default limit applies, and the result says that it was reached."""
    plant(tmp_path, {f"{number:03}.txt": "x\nx\n" for number in range(101)})

    by_default = await run_call(glob.tool(engine), tmp_path, pattern="*")
    fewer = await run_call(grep.tool(engine), tmp_path, pattern="x", limit=3)
    exactly = await run_call(glob.tool(engine), tmp_path, pattern="*", limit=101)

    assert len(by_default.structured["value"]) == 100
    assert by_default.structured["truncated"] is True
    assert text(by_default).endswith("(There may be more: only 100 are listed)")
    assert [(item["path"], item["line"]) for item in fewer.structured["value"]] == [
        ("000.txt", 1),
        ("000.txt", 2),
        ("001.txt", 1),
    ]
    assert fewer.structured["truncated"] is True
    assert exactly.structured["truncated"] is False


async def test_links_are_not_followed(engine: SearchEngine, tmp_path: Path) -> None:
    """L-05, L-65: loops end, and nothing outside is found."""
    here = plant(tmp_path / "here", {"a.txt": "needle\n"})
    plant(tmp_path / "there", {"b.txt": "needle\n"})
    (here / "out").symlink_to(tmp_path / "there")
    (here / "loop").symlink_to(here)
    (here / "file").symlink_to(tmp_path / "there/b.txt")

    assert await find_files(engine, here, pattern="**") == ["a.txt"]
    assert await find_lines(engine, here, pattern="needle") == [("a.txt", 1, "needle")]


async def test_odd_names_are_found(engine: SearchEngine, tmp_path: Path) -> None:
    """L-61: names may have line breaks, leading dashes or invalid bytes."""
    plant(tmp_path, {"-e": "x\n", "a\nb": "x\n", os.fsdecode(b"\xff"): "x\n"})

    assert await find_files(engine, tmp_path, pattern="*") == ["-e", "a\nb", "\ufffd"]
    assert [path for path, _, _ in await find_lines(engine, tmp_path, pattern="x")] == [
        "-e",
        "a\nb",
        "\ufffd",
    ]
    assert len(await find_lines(engine, tmp_path, pattern="x", path="-e")) == 1


async def test_a_pattern_that_never_ends_is_stopped(tmp_path: Path) -> None:
    """L-64: the backtracking engine has a time limit, and no process stays."""
    (tmp_path / "a.txt").write_text("needle\n")
    (tmp_path / "b.txt").write_text("a" * 5000 + "\n")
    quick, slower = SearchEngine(None, limit_s=0.5), SearchEngine(None, limit_s=5.0)

    message = await failure_of(grep.tool(quick), tmp_path, pattern="(a|aa)+$x", path="b.txt")
    partly = await run_call(grep.tool(slower), tmp_path, pattern="needle|(a|aa)+$x")

    assert message == "Unable to search b.txt: it took too long"
    assert [item["path"] for item in partly.structured["value"]] == ["a.txt"]
    assert partly.structured["truncated"] is True
    assert processes_in(tmp_path) == []


def processes_in(directory: Path) -> list[str]:
    """The processes whose working directory this is."""
    return [
        path.name
        for path in Path("/proc").glob("[0-9]*")
        if _link_target(path / "cwd") == str(directory)
    ]


def _link_target(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


async def test_a_cancelled_search_leaves_no_process(tmp_path: Path) -> None:
    """L-62: the search process is killed with the call."""
    (tmp_path / "a.txt").write_text("a" * 5000 + "\n")
    tool = grep.tool(SearchEngine(None))
    input_ = tool.input.model_validate({"pattern": "(a|aa)+$x"})
    task = asyncio.ensure_future(tool.execute(input_, call_context(tmp_path)))
    deadline = time.monotonic() + 20
    while not processes_in(tmp_path) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert processes_in(tmp_path)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_in(tmp_path) == []


async def test_nothing_in_the_searched_directory_is_run(tmp_path: Path) -> None:
    """L-62: a file with the name of a module is not imported."""
    for name in ("json", "re", "sitecustomize", "fairlead_tools"):
        (tmp_path / f"{name}.py").write_text("open('run', 'w')\n")

    assert len(await find_lines(SearchEngine(None), tmp_path, pattern="open")) == 4
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        (r"[[:alpha:]]+\d", ["ab1"]),
        (r"\bfoo\z", ["a foo"]),
        (r"[^]]x", ["bx"]),
        (r"[]x]y", ["]y"]),
        (r"(?i)FOO", ["a foo"]),
        (r"(?P<n>b)x|(?P<m>b)1", ["ab1", "bx"]),
        (r"\x{62}x", ["bx"]),
        (r"^$", [""]),
        (r"a.{3}$", ["äöa, ü"]),
    ],
)
async def test_patterns_mean_the_same_in_both_engines(
    engine: SearchEngine, tmp_path: Path, pattern: str, lines: list[str]
) -> None:
    """L-62: classes, groups and escapes mean what they mean to ripgrep."""
    (tmp_path / "a.txt").write_text("ab1\na foo\nbx\n]y\n\näöa, ü\n")

    assert [line for _, _, line in await find_lines(engine, tmp_path, pattern=pattern)] == lines


names = st.sampled_from(["a", "b", "c.py", ".d", "e f", "build"])
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
rules = st.lists(
    st.sampled_from(
        [
            *("*", "!*", "a", "!a", "/a", "a/", "!a/", "*.py", "!*.py", "b/*", "!b/*", "**/b"),
            *(
                "a/**",
                "/*",
                "!/b",
                "a/**/b",
                ".d",
                "!.d",
                "[ab]",
                "e f",
                "e\\ f ",
                "# a",
                "{a,b}/c*",
            ),
        ]
    ),
    max_size=4,
).map("\n".join)


@pytest.mark.skipif(RG is None, reason="ripgrep is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    files=st.lists(paths, max_size=12),
    ignores=st.lists(
        st.tuples(paths, st.sampled_from([".gitignore", ".ignore"]), rules), max_size=4
    ),
    top=rules,
    hidden=st.booleans(),
    below=st.none() | names,
)
def test_both_engines_find_the_same_in_any_tree(
    files: list[str],
    ignores: list[tuple[str, str, str]],
    top: str,
    hidden: bool,  # noqa: FBT001
    below: str | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """L-60, L-62: this holds for nested ignore files, exceptions and hidden files, in order."""
    root = tmp_path_factory.mktemp("tree")
    (root / ".git").mkdir()
    own_files = [(".gitignore", top), *((name, "x\n") for name in files)]
    for name, content in (
        *own_files,
        *((f"{path}/{kind}", rules) for path, kind, rules in ignores),
    ):
        # A generated file and a generated directory may have the same path.
        with suppress(OSError):
            plant(root, {name: content})
    here = root / below if below is not None and (root / below).is_dir() else root
    assert RG is not None
    command = [RG, *COMMON, "--files", "--null", *["--hidden"] * hidden, "./"]

    output = subprocess.run(command, cwd=here, capture_output=True, check=False).stdout
    with chdir(here):
        own = list(FileFinder(hidden=hidden).files())

    assert own == [name.removeprefix("./") for name in output.decode().split("\0") if name]


def test_our_own_finder_is_a_program_too(tmp_path: Path) -> None:
    """L-64: the exit code is 2 for a bad pattern or an unreadable place."""
    request = {"hidden": True, "pattern": "(", "include": None, "file": None}
    command = [
        sys.executable,
        "-I",
        "-m",
        "fairlead_tools.files.search.finder",
        json.dumps(request),
    ]

    process = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)

    assert process.returncode == 2
    assert process.stderr.startswith(b"regex parse error")


async def test_one_endless_line_does_not_take_the_memory_of_the_machine(
    engine: SearchEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B10: a program that holds a whole line is refused the memory, and only the search fails."""
    monkeypatch.setattr(search, "MEMORY_BYTES_MAX", 64 << 20)
    (tmp_path / "a.txt").write_bytes(b"x" * (128 << 20))

    result = await try_call(grep.tool(engine), tmp_path, pattern="y")

    assert isinstance(result, Succeeded) == (engine.program is None)
    assert engine.program is None or result == Failed("Unable to search .: it cannot be read")


async def test_a_sparse_file_does_not_hold_up_a_search(
    engine: SearchEngine, tmp_path: Path
) -> None:
    """B10: a file with zero bytes is not searched to its end."""
    with (tmp_path / "sparse.txt").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "small.txt").write_text("needle\n")

    async with asyncio.timeout(30):
        assert await find_lines(engine, tmp_path, pattern="needle") == [("small.txt", 1, "needle")]
