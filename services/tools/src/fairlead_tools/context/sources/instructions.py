"""`core/instructions`: all instruction files that apply at a location, as one source."""

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from fairlead_schema.context import ObserveContext, ObservedSource, UnavailableKind
from fairlead_service.config.context import ContextConfig
from fairlead_tools.context.project import ObservedProject, directories_up
from fairlead_tools.context.sources.files import (
    TextFiles,
    Unreadable,
    expand_home,
    is_present,
    printable_path,
    resolve_file,
    resolve_inside,
)
from fairlead_tools.context.watch.looked_paths import depend_on_unwatched, look_at

KEY: Final = "core/instructions"
MATCHES_MAX: Final = 200
# Rendered instructions of so many places are kept; each may have hundreds of kilobytes.
KEPT_MAX: Final = 64

CHANGED: Final = (
    "The instructions have changed. Those below replace all that you were given before:"
)
REVOKED: Final = "The instruction files you were given before no longer apply; there are none now."

PERMANENT: Final = frozenset[UnavailableKind]({"unreadable", "outside", "too-large", "not-text"})
"""Reasons that last until a person mends the file; the others pass by themselves."""

FetchedPages: TypeAlias = Mapping[str, str | Unreadable]
"""The text of each web page, or why it has none, by address."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file or page of instructions."""

    name: str
    text: str

    @property
    def value(self) -> list[str]:
        return [self.name, sha256(self.text.encode()).hexdigest()]

    @property
    def section(self) -> str:
        return f"Instructions from {self.name}:\n{self.text}"


@dataclass(frozen=True, slots=True)
class MissingInstruction:
    """An instruction that applies and cannot be read."""

    name: str
    error: Unreadable

    @property
    def value(self) -> list[str]:
        return [self.name, self.error.why]

    @property
    def section(self) -> str:
        return f"There are instructions in {self.name} that cannot be read: {self.error.reason}"


InstructionPart: TypeAlias = Instruction | MissingInstruction


class InstructionFile(NamedTuple):
    """The path of a file, and the root that it must stay inside."""

    path: Path
    root: Path | None = None


class Instructions:
    """Finds and reads the instructions of a location."""

    def __init__(self, settings: ContextConfig) -> None:
        self._settings = settings
        self._texts = TextFiles(settings.file_bytes_max)
        file = settings.global_file
        self._global_file = None if file is None else expand_home(file)
        self.urls = tuple(entry for entry in settings.instructions if is_url(entry))
        """The addresses to fetch before an observation."""

    def observe(
        self, request: ObserveContext, project: ObservedProject, fetched: FetchedPages
    ) -> ObservedSource | None:
        """All instructions, or None when there are none. Raises Unreadable, OSError.

        When a file stays unreadable, a session that knows an earlier version keeps it. A new session
        would wait for ever: it starts with the other files, and the model learns what is missing.
        """
        parts = self._limit_total(tuple(self._parts(request, project, fetched)))
        error = next((part.error for part in parts if isinstance(part, MissingInstruction)), None)
        if error is not None:
            raise Unreadable(error.why, error.reason, instead=render(parts))
        return _render_kept(parts) if parts else None

    def _limit_total(self, parts: tuple[InstructionPart, ...]) -> tuple[InstructionPart, ...]:
        """Mark the instructions beyond the total size limit as missing."""
        sizes = [len(part.text.encode()) if isinstance(part, Instruction) else 0 for part in parts]
        limit = self._settings.total_bytes_max
        error = Unreadable("too-large", f"the instructions have {sum(sizes)} bytes of {limit}")
        return tuple(
            MissingInstruction(part.name, error)
            if isinstance(part, Instruction) and total > limit
            else part
            for part, total in zip(parts, accumulate(sizes), strict=True)
        )

    def _parts(
        self, request: ObserveContext, project: ObservedProject, fetched: FetchedPages
    ) -> Iterator[InstructionPart]:
        read_files: set[Path] = set()
        for path in self._paths(request, project):
            try:
                part = (
                    self._page(path, fetched)
                    if isinstance(path, str)
                    else self._file(path, read_files)
                )
            except Unreadable as error:
                if error.why not in PERMANENT:
                    raise
                yield MissingInstruction(
                    path if isinstance(path, str) else printable_path(path.path), error
                )
            else:
                if part is not None:
                    yield part

    def _page(self, url: str, fetched: FetchedPages) -> Instruction:
        page = fetched[url]
        if isinstance(page, Unreadable):
            raise page
        return Instruction(url, page)

    def _file(self, file: InstructionFile, read_files: set[Path]) -> Instruction | None:
        """The instruction in a file; None if the file was read before under another name."""
        path, root = file
        target = resolve_file(path) if root is None else resolve_inside(path, root)
        if target in read_files:
            return None
        read_files.add(target)
        return Instruction(printable_path(path), self._texts.read(target))

    def _paths(
        self, request: ObserveContext, project: ObservedProject
    ) -> Iterator[InstructionFile | str]:
        """All files and addresses in rendering order.

        The global file, the project from the directory upwards, the configured ones, and the
        directories below that the session has read. No file of an untrusted project is among them.
        """
        settings, directory, root = self._settings, project.directory, project.root
        counts = settings.project and project.is_trusted
        if self._global_file is not None and is_present(self._global_file):
            yield InstructionFile(self._global_file)
        if counts:
            yield from _first_names(directories_up(directory, root), settings.names, root)
        for entry in settings.instructions:
            if is_url(entry):
                yield entry
            elif project.is_trusted or expand_home(entry).is_absolute():
                yield from _configured_files(entry, directory, root)
        if counts:
            yield from _first_names(
                directories_below(directory, request.read_directories), settings.names, root
            )


def render(parts: tuple[InstructionPart, ...]) -> ObservedSource:
    """All instructions as one observation. After any change the model reads all of them again."""
    text = "\n\n".join(part.section for part in parts)
    return ObservedSource(
        key=KEY,
        value=[part.value for part in parts],
        baseline=text,
        update=f"{CHANGED}\n\n{text}",
        removed=REVOKED,
    )


@lru_cache(KEPT_MAX)
def _render_kept(parts: tuple[InstructionPart, ...]) -> ObservedSource:
    """The same observation for the same files, so that nobody renders or compares it again."""
    return render(parts)


def directories_below(directory: Path, read_directories: tuple[str, ...]) -> tuple[Path, ...]:
    """The directories below a location that lead to what the session has read, outermost first."""
    base, places = str(directory).rstrip("/"), set[str]()
    look_at(*read_directories)
    for place in read_directories:
        target = os.path.realpath(place)
        # Most paths share their parents: a directory that is known ends the walk.
        while target.startswith(f"{base}/") and target not in places:
            places.add(target)
            target = os.path.dirname(target)  # noqa: PTH120 - before every turn, for many
    return tuple(sorted(Path(place) for place in places if place != str(directory)))


def is_url(entry: str) -> bool:
    return entry.startswith(("http://", "https://"))


def _first_names(
    places: tuple[Path, ...], names: tuple[str, ...], root: Path
) -> Iterator[InstructionFile]:
    """In each directory the first of the names that exists."""
    for place in places:
        name = next((name for name in names if is_present(place / name)), None)
        if name is not None:
            yield InstructionFile(place / name, root)


def _configured_files(entry: str, directory: Path, root: Path) -> Iterator[InstructionFile]:
    """The files of a path or pattern. A relative one must stay inside the project."""
    path = expand_home(entry)
    look_at(directory / path)
    if glob.has_magic(entry):
        depend_on_unwatched("a pattern in context.instructions")
    pattern = str(Path(glob.escape(str(directory))) / path)
    matches = islice(glob.iglob(pattern, recursive=True), MATCHES_MAX)  # noqa: PTH207
    for match in sorted(map(Path, matches)):
        if match.is_dir():
            continue
        yield InstructionFile(match, None if path.is_absolute() else root)
