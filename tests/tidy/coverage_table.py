"""Which behaviours the tests name: every id of the catalogue, with the tests that cite it.

A test cites behaviours in its docstring (`H-30, H-31`) or one at the start of its name (`test_h30_a_stream_…`).
`make coverage` writes `docs/coverage.md`. An id that no test cites needs its
reason in `coverage_reasons.py`, otherwise the table is refused.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.tidy.coverage_reasons import DECIDED, IN_PART, NOT_BUILT

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/coverage.md"
CATALOGUE = ROOT.parent / "shared/BEHAVIOUR.md"

ID = re.compile(r"\b[A-Q]-\d\d\b")
NAME_ID = re.compile(r"test_([a-q])(\d\d)_")
LISTED = re.compile(r"(?m)^- \*\*([A-Q]-\d\d)\*\*")
ROW = re.compile(r"(?m)^\| ([A-Q]-\d\d) \|")
FOLDERS = ("libs", "services", "apps", "tests")

HEAD = """\
# Coverage

Every behaviour of the catalogue and the tests that cite it, in their docstrings or names. Generated from the tests by
`make coverage`; the catalogue itself is not part of this repository. A behaviour that is not built, is built in part, or
that the project decided otherwise says so and why; the tests beside it show what holds instead.
"""


def ids() -> list[str]:
    """Every id there is: from the catalogue where it lies beside the project, else from the table."""
    if CATALOGUE.exists():
        return sorted(set(LISTED.findall(CATALOGUE.read_text())))
    return sorted(set(ROW.findall(TABLE.read_text())))


@cache
def citations() -> dict[str, list[str]]:
    """The tests that cite each id."""
    tests: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py")):
        for name, id_ in _citations_in(path.read_text()):
            tests[id_].append(f"`{name}` ({_package(path)})")
    return tests


def _citations_in(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test"
        ):
            for id_ in sorted(cited_ids(node.name, ast.get_docstring(node) or "")):
                yield node.name, id_


def cited_ids(name: str, docstring: str) -> set[str]:
    """The ids that a test cites: one at the start of its name, any number in its docstring."""
    match = NAME_ID.match(name)
    in_name = {f"{match[1].upper()}-{match[2]}"} if match else set()
    return in_name | set(ID.findall(docstring))


def _package(path: Path) -> str:
    return "/".join(path.relative_to(ROOT).parts[:2])


def table(catalogue: Iterable[str], cited: Mapping[str, list[str]]) -> str:
    """The document. Raises `Unexplained` if a behaviour has neither a test nor a reason."""
    rows = [HEAD]
    section = ""
    for id_ in catalogue:
        if id_[0] != section:
            section = id_[0]
            rows.append(f"\n## {section}\n\n| id | tests |\n|---|---|")
        rows.append(f"| {id_} | {_cell(id_, cited)} |")
    return "\n".join(rows).replace("\n\n\n", "\n\n") + "\n"


class Unexplained(Exception):
    """A behaviour has neither a test nor a reason for having none."""


def _cell(id_: str, cited: Mapping[str, list[str]]) -> str:
    remark = _remark(id_)
    tests = ", ".join(sorted(set(cited.get(id_, ()))))
    if not remark and not tests:
        raise Unexplained(f"{id_}: cite it in a test, or give its reason in coverage_reasons.py")
    return f"{remark}; tests: {tests}" if remark and tests else remark or tests


def _remark(id_: str) -> str:
    if id_ in NOT_BUILT:
        return f"not built: {NOT_BUILT[id_]}"
    if id_ in IN_PART:
        return f"built in part: {IN_PART[id_]}"
    return f"decided otherwise: {DECIDED[id_]}" if id_ in DECIDED else ""


def main() -> None:
    catalogue, cited = ids(), citations()
    document = table(catalogue, cited)
    if "--write" in sys.argv:
        TABLE.write_text(document)
    covered = sum(1 for id_ in catalogue if cited.get(id_))
    sys.stdout.write(f"{covered} of {len(catalogue)} covered\n")


if __name__ == "__main__":
    main()
