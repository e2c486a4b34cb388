"""Ignore files: which entries of a tree a search leaves out.

`.rgignore` comes before `.ignore`, and `.ignore` before `.gitignore`. Of one kind the nearest file
with a rule for the entry decides, and in it the last such rule. A `.gitignore` above the repository
has no effect.

The `pathspec` library does not fit: it lets a rule for a directory decide about the files in it,
which git and ripgrep do not do across nested ignore files, and its patterns backtrack without bound.
"""

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from fairlead_tools.files.search.globs import BadGlob, compile_glob

KINDS: Final = (".rgignore", ".ignore", ".gitignore")
FILE_BYTES_MAX: Final = 1 << 20

_TRAILING: Final = re.compile(r"(?<!\\)[ \t]+$")


class IgnoreRule(NamedTuple):
    """One line of an ignore file."""

    pattern: re.Pattern[str]
    ignores: bool
    directories: bool


class IgnoreLayer(NamedTuple):
    """The ignore files of one directory, on top of those above it."""

    above: "IgnoreLayer | None"
    name: str
    """The name of the directory in its parent."""
    rules: tuple[tuple[IgnoreRule, ...], ...]
    root: bool
    """Whether the directory is the root of a repository."""


def read_layer(directory: str, above: IgnoreLayer | None = None, name: str = "") -> IgnoreLayer:
    """Read the ignore files of a directory."""
    rules = tuple(tuple(_rules(_text(os.path.join(directory, kind)))) for kind in KINDS)  # noqa: PTH118
    root = os.path.exists(os.path.join(directory, ".git"))  # noqa: PTH110, PTH118
    return IgnoreLayer(above, name, rules, root)


def read_layers(directory: str) -> IgnoreLayer:
    """Read the ignore files of a directory and of all its parents."""
    layer = read_layer("/")
    path = ""
    for name in directory.strip("/").split("/"):
        path += f"/{name}"
        layer = read_layer(path, layer, name)
    return layer


def is_ignored(here: IgnoreLayer, name: str, *, directory: bool) -> bool | None:
    """Whether an entry of a directory is ignored; None if no rule matches it."""
    for kind, file in enumerate(KINDS):
        path, at, stopped = name, here, False
        while True:
            ignored = None if stopped else _last_match(at.rules[kind], path, directory=directory)
            if ignored is not None:
                return ignored
            stopped = stopped or (file == ".gitignore" and at.root)
            if at.above is None:
                break
            path, at = f"{at.name}/{path}", at.above
    return None


def _last_match(rules: tuple[IgnoreRule, ...], path: str, *, directory: bool) -> bool | None:
    for rule in reversed(rules):
        if (directory or not rule.directories) and rule.pattern.fullmatch(path):
            return rule.ignores
    return None


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(FILE_BYTES_MAX).decode(errors="replace").removeprefix("\ufeff")
    except OSError:
        return ""


def _rules(text: str) -> Iterator[IgnoreRule]:
    for line in text.splitlines():
        glob = _TRAILING.sub("", line)
        if not glob or glob.startswith("#"):
            continue
        ignores = not glob.startswith("!")
        glob = glob if ignores else glob[1:]
        directories = glob.endswith("/")
        glob = glob.removesuffix("/")
        if not directories and glob.startswith("\\") and glob[1:2] in {"#", "!"}:
            glob = glob[1:]
        try:
            yield IgnoreRule(compile_glob(glob), ignores, directories)
        except BadGlob:
            continue
