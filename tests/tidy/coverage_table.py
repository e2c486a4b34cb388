"""Which behaviours the tests name: every id of the catalogue, with the tests that cite it.

A test cites a behaviour by its id in its docstring. `python tests/tidy/coverage_table.py --write` writes
`docs/coverage.md`; without `--write` it lists what of the finished sections is missing.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/coverage.md"
CATALOGUE = ROOT.parent / "shared/BEHAVIOUR.md"

ID = re.compile(r"\b[A-Q]-\d\d\b")
LISTED = re.compile(r"(?m)^- \*\*([A-Q]-\d\d)\*\*")
ROW = re.compile(r"(?m)^\| ([A-Q]-\d\d) \|")
FOLDERS = ("libs", "services", "apps", "tests")
# The session semantics, context, providers, and the tools with everything they ask people.
SECTIONS = (*"ABCDEFGJKLMO", *(f"N-{number}" for number in range(23, 28)))

HEAD = """\
# Coverage

Every behaviour of the catalogue and the tests that name it in their docstrings. Generated from the tests by
`make coverage`; the catalogue itself is not part of this repository. `none` means that no test names it yet.
"""

# Of the finished sections: what the architecture decided otherwise, or what has no meaning outside one process.
DECIDED: Mapping[str, str] = {
    "B-18": "a promotion is one commit of the log, and no projection can roll it back (sections 4, 7)",
    "B-19": "nothing observes inside a commit: projections read the log afterwards (section 7)",
    "C-10": "nobody waits inside a drain: waiting is reading, and its end cancels nothing (section 5)",
    "C-17": "who drains is in the log, not in a process, and outlives every shutdown (section 5)",
    "C-18": "a follow-up is a new drain from a loop; there is no stack to grow (section 6)",
    "D-40": "a quirk: a step ends once, and `fairlead verify` refuses a second end",
    "D-42": "there is an idle-stream timeout per model (section 9, provider retries)",
    "E-08": "a quirk: one tool crashes, only that call fails (section 9)",
    "E-11": "a quirk: a decline settles its calls and the step durably (section 9)",
}


def ids() -> list[str]:
    """Every id there is: from the catalogue where it lies beside the project, else from the table."""
    if CATALOGUE.exists():
        return sorted(set(LISTED.findall(CATALOGUE.read_text())))
    return sorted(set(ROW.findall(TABLE.read_text())))


def citations() -> dict[str, list[str]]:
    """The tests that cite each id."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py")):
        for name, cited in _cited(path):
            found[cited].append(f"`{name}` ({_package(path)})")
    return found


def _cited(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test"
        ):
            said = ast.get_docstring(node) or ""
            yield from ((node.name, cited) for cited in sorted(set(ID.findall(said))))


def _package(path: Path) -> str:
    return "/".join(path.relative_to(ROOT).parts[:2])


def table(known: Iterable[str], cited: Mapping[str, list[str]]) -> str:
    """The document."""
    rows = [HEAD]
    section = ""
    for id_ in known:
        if id_[0] != section:
            section = id_[0]
            rows.append(f"\n## {section}\n\n| id | tests |\n|---|---|")
        rows.append(f"| {id_} | {_tests(id_, cited)} |")
    return "\n".join(rows).replace("\n\n\n", "\n\n") + "\n"


def _tests(id_: str, cited: Mapping[str, list[str]]) -> str:
    if cited.get(id_):
        return ", ".join(sorted(set(cited[id_])))
    return f"decided otherwise: {DECIDED[id_]}" if id_ in DECIDED else "none"


def missing(known: Iterable[str], cited: Mapping[str, list[str]]) -> list[str]:
    """The ids of the finished sections that no test names and nobody decided against."""
    return [
        id_
        for id_ in known
        if id_.startswith(SECTIONS) and id_ not in DECIDED and not cited.get(id_)
    ]


def main() -> None:
    known, cited = ids(), citations()
    if "--write" in sys.argv:
        TABLE.write_text(table(known, cited))
    covered = sum(1 for id_ in known if cited.get(id_))
    lacking = " ".join(missing(known, cited)) or "nothing"
    sys.stdout.write(f"{covered} of {len(known)} covered; of what is finished missing: {lacking}\n")


if __name__ == "__main__":
    main()
