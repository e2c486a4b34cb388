"""The documents say what the code says: every contract is named, every link leads somewhere."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import get_args
from urllib.parse import unquote

import pytest
from pydantic.fields import FieldInfo

from fairlead_eventlog.streams import STREAMS
from fairlead_gateway.routes import OPERATIONS
from fairlead_schema.errors import Refused
from fairlead_schema.events import MANIFEST
from fairlead_service.config.configuration import Config
from fairlead_service.config.section import Section
from tests.tidy.test_tidy import sources

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
TERM = re.compile(r"(?m)^\*\*([^*]+)\*\*: *(.*)$")
HEADING = re.compile(r"(?m)^#+ +(.+)$")
PLACE = re.compile(r"`((?:libs|services)/\w+/[^`\s]+)`")
TEST = re.compile(r"`(test_\w+)`")


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text()


def documents() -> list[Path]:
    return ours("*.md")


def ours(pattern: str) -> list[Path]:
    """The project's files of a kind: what lies in a hidden folder is not ours."""
    return [
        path
        for path in sorted(ROOT.rglob(pattern))
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


def prose(path: Path) -> str:
    """A document without its code blocks."""
    return FENCE.sub("", path.read_text())


def blocks(name: str, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(text(name)) if kind == language]


def first_cells(name: str) -> set[str]:
    """What the tables of a document list in their first column."""
    return set(re.findall(r"(?m)^\| `([^`]+)` \|", text(name)))


def keys(section: type[Section], path: str = "") -> Iterator[str]:
    """Every key of the configuration, with placeholders for the names people choose."""
    for name, field in section.model_fields.items():
        inner = _section(field)
        if inner is None:
            yield f"{path}{name}"
        elif _named(field):
            yield from keys(
                inner, f"{path}{name}.<{'model' if path.startswith('provider') else 'name'}>."
            )
        else:
            yield from keys(inner, f"{path}{name}.")


def _named(field: FieldInfo) -> bool:
    return bool(get_args(field.annotation))


def _section(field: FieldInfo) -> type[Section] | None:
    inner = (get_args(field.annotation) or (field.annotation,))[-1]
    return inner if isinstance(inner, type) and issubclass(inner, Section) else None


def kinds(refused: type[Refused] = Refused) -> Iterator[type[Refused]]:
    for kind in refused.__subclasses__():
        yield kind
        yield from kinds(kind)


def anchors(path: Path) -> set[str]:
    """The places of a document that a link may name."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose(path)))
    return {heading.replace(" ", "-") for heading in plain}


def test_every_event_has_its_row() -> None:
    rows = [f"| `{event.type}` | {event.version} | {event.visibility} |" for event in MANIFEST]

    assert [row for row in rows if row not in text("docs/contracts.md")] == []


def called_names() -> set[str]:
    """The names that a service or a library calls, classes among them."""
    return {
        node.func.id
        for path in sources()
        if not {"apps", "fairlead_schema"} & set(path.relative_to(ROOT).parts)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


def test_the_events_that_no_service_writes_are_reserved() -> None:
    sentence = re.search(r"(?m)^Reserved are ([^:]+):", text("docs/contracts.md"))
    assert sentence is not None
    reserved = re.findall(r"`([^`]+)`", sentence[1])
    names = called_names()

    assert {event.type for event in MANIFEST if event.__name__ not in names} == {
        event.type
        for event in MANIFEST
        if any(fnmatch(event.type, pattern) for pattern in reserved)
    }


def test_every_stream_has_its_row() -> None:
    assert {stream.name for stream in STREAMS} - first_cells("docs/contracts.md") == set()


def test_every_route_has_its_row() -> None:
    routes = {f"{operation.method} {operation.path}" for operation in OPERATIONS}

    assert routes - first_cells("docs/contracts.md") == set()


def test_every_error_has_its_row_with_its_status() -> None:
    rows = [f"| `{kind.tag}` | {kind.status} |" for kind in kinds()]

    assert rows
    assert [row for row in rows if row not in text("docs/errors.md")] == []


def test_every_key_of_the_configuration_has_its_row_and_no_other_has() -> None:
    listed = first_cells("docs/configuration.md") - {"provider.<name>.model"}

    assert listed == set(keys(Config))


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/configuration.md",
        "docs/guide/context.md",
        "docs/guide/extending.md",
        "docs/guide/tools.md",
    ],
)
def test_every_example_configuration_loads(name: str) -> None:
    examples = blocks(name, "toml")

    assert examples
    for example in examples:
        Config.model_validate(tomllib.loads(example))


@pytest.mark.parametrize("block", blocks("README.md", "sh"), ids=lambda block: block.split()[0])
def test_every_shell_block_of_the_readme_parses(block: str) -> None:
    ran = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    "name", ["docs/guide/context.md", "docs/guide/extending.md", "docs/guide/tools.md"]
)
def test_every_program_of_a_guide_compiles(name: str) -> None:
    programs = blocks(name, "python")

    assert programs
    for program in programs:
        compile(program, name, "exec")


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    links = [link for link in LINK.findall(prose(path)) if not re.match(r"\w+:", link)]
    targets = [(link, *link.partition("#")[::2]) for link in links]
    places = [
        (link, (path.parent / unquote(name)) if name else path, anchor)
        for link, name, anchor in targets
    ]

    assert [link for link, place, _anchor in places if not place.exists()] == []
    assert [
        link
        for link, place, anchor in places
        if anchor and place.suffix == ".md" and anchor not in anchors(place)
    ] == []


def test_every_term_has_a_meaning_and_one_only() -> None:
    terms = TERM.findall(text("CONTEXT.md"))
    names = [term.lower() for term, _meaning in terms]

    assert terms
    assert [term for term, meaning in terms if not meaning] == []
    assert sorted(names) == sorted(set(names))


def test_every_term_says_what_to_avoid() -> None:
    entries = re.split(r"(?m)^(?=\*\*[^*]+\*\*:)", text("CONTEXT.md").partition("\n## Rel")[0])[1:]

    assert [entry.splitlines()[0] for entry in entries if "\n*Avoid*: " not in entry] == []


def test_every_test_that_a_document_names_exists() -> None:
    files = ours("test_*.py")
    written = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    named = {name for path in documents() for name in TEST.findall(path.read_text())}

    assert named - written == set()


@pytest.mark.parametrize("name", ["docs/where-to-look.md", "ARCHITECTURE.md"])
def test_every_place_that_a_table_names_exists(name: str) -> None:
    """Paths leave out `src/fairlead_<package>/`; a word in angle brackets stands for any name."""
    missing = [
        path
        for path in sorted(set(PLACE.findall(text(name))))
        if not any(ROOT.glob(_real_path(path))) and not (ROOT / path).exists()
    ]

    assert missing == []


def _real_path(place: str) -> str:
    group, package, rest = place.split("/", 2)
    return f"{group}/{package}/src/fairlead_{package}/{re.sub(r'<[^>]+>', '*', rest)}"
