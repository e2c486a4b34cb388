"""Searches without ripgrep, as a program of its own, so that the search can be killed.

The command line holds the search as JSON. The program searches its working directory and answers
like ripgrep: paths that end with a zero byte, or one JSON record for each matching line.
"""

import base64
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from fairlead_tools.files.search.dialect import BadPattern, compile_pattern
from fairlead_tools.files.search.globs import BadGlob, matches_glob
from fairlead_tools.files.search.ignore import IgnoreLayer, is_ignored, read_layer, read_layers

FAILED: Final = 2
BAD_PATTERN: Final = "regex parse error"
LINE_BYTES_MAX: Final = 1 << 20


class FileFinder:
    """Lists the files below the working directory."""

    def __init__(self, *, hidden: bool) -> None:
        self._hidden = hidden
        self.failed = False

    def files(self) -> Iterator[str]:
        """Every file that is not ignored, sorted by name within each directory."""
        pending: list[Iterator[tuple[str, IgnoreLayer | None]]] = [
            self._entries("", read_layers(os.getcwd()))  # noqa: PTH109
        ]
        while pending:
            entry = next(pending[-1], None)
            if entry is None:
                pending.pop()
            elif entry[1] is None:
                yield entry[0]
            else:
                pending.append(self._entries(*entry))

    def _entries(
        self, directory: str, here: IgnoreLayer | None
    ) -> Iterator[tuple[str, IgnoreLayer | None]]:
        assert here is not None, "a directory has a layer"
        try:
            with os.scandir(directory or ".") as scan:
                entries = sorted(scan, key=lambda entry: os.fsencode(entry.name))
        except OSError:
            self.failed = True
            return
        for entry in entries:
            path = f"{directory}/{entry.name}" if directory else entry.name
            inner = entry.is_dir(follow_symlinks=False)
            if not inner and not entry.is_file(follow_symlinks=False):
                continue
            if self._is_skipped(here, entry.name, directory=inner):
                continue
            yield path, read_layer(path, here, entry.name) if inner else None

    def _is_skipped(self, here: IgnoreLayer, name: str, *, directory: bool) -> bool:
        if name == ".git":
            return True
        ignored = is_ignored(here, name, directory=directory)
        hidden = name.startswith(".") and not self._hidden
        return hidden if ignored is None else ignored


def matching_lines(path: str, pattern: re.Pattern[str]) -> Iterator[dict[str, Any]]:
    """The lines of one file that match, up to the first zero byte."""
    with open(path, "rb") as file:  # noqa: PTH123
        for number, offset, line in _number_lines(file):
            if b"\0" in line:
                return
            submatches = _submatches(pattern, line.removesuffix(b"\n"))
            if submatches:
                yield {
                    "path": _encode(os.fsencode(path)),
                    "lines": _encode(line),
                    "line_number": number,
                    "absolute_offset": offset,
                    "submatches": submatches,
                }


def _number_lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    number, offset = 1, 0
    while line := file.readline(LINE_BYTES_MAX):
        yield number, offset, line
        offset += len(line)
        number += line.endswith(b"\n")


def _submatches(pattern: re.Pattern[str], line: bytes) -> list[dict[str, Any]]:
    text = line.decode(errors="surrogateescape")
    submatches = []
    for match in pattern.finditer(text):
        start = len(text[: match.start()].encode(errors="surrogateescape"))
        raw = match[0].encode(errors="surrogateescape")
        submatches.append({"match": _encode(raw), "start": start, "end": start + len(raw)})
    return submatches


def _encode(raw: bytes) -> dict[str, str]:
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(raw).decode("ascii")}


def main(request: dict[str, Any]) -> int:
    """Run one search. Returns 0, or 2 if something could not be searched."""
    out = sys.stdout.buffer
    finder = FileFinder(hidden=request["hidden"])
    if request["pattern"] is None:
        for path in finder.files():
            out.write(os.fsencode(path) + b"\0")
        return FAILED if finder.failed else 0
    pattern = compile_pattern(request["pattern"])
    include = request["include"]
    for path in finder.files() if request["file"] is None else (request["file"],):
        if include is not None and not matches_glob(include, path):
            continue
        try:
            for record in matching_lines(path, pattern):
                line = json.dumps({"type": "match", "data": record}, ensure_ascii=False)
                out.write(line.encode() + b"\n")
            out.flush()
        except OSError:
            finder.failed = True
    return FAILED if finder.failed else 0


if __name__ == "__main__":
    try:
        status = main(json.loads(sys.argv[1]))
        sys.stdout.buffer.flush()
    except (BadPattern, BadGlob) as error:
        sys.stderr.write(f"{BAD_PATTERN}: {error}")
        status = FAILED
    sys.exit(status)
