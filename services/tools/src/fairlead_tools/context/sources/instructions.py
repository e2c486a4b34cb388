"""`core/instructions`: every instruction file that applies, as one source."""

import glob
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from fairlead_schema.context import ObserveContext, ObservedSource, UnavailableKind
from fairlead_service.config.context import ContextConfig
from fairlead_tools.context.sources import environment
from fairlead_tools.context.sources.files import (
    TextFiles,
    Unreadable,
    expand_home,
    is_present,
    printable_path,
    real_path,
    resolve_file,
    resolve_inside,
)

KEY: Final = "core/instructions"
MATCHES_MAX: Final = 200

CHANGED: Final = (
    "The instructions have changed. Those below replace all that you were given before:"
)
REVOKED: Final = "The instruction files you were given before no longer apply; there are none now."

PERMANENT: Final = frozenset[UnavailableKind]({"unreadable", "outside", "too-large", "not-text"})
"""Reasons that somebody has to mend; the others pass."""

FetchedPages: TypeAlias = Mapping[str, str | Unreadable]
"""What the web said, by address."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file or page of instructions."""

    name: str
    text: str

    @property
    def value(self) -> list[str]:
        return [self.name, sha256(self.text.encode()).hexdigest()]

    @property
    def rendered(self) -> str:
        return f"Instructions from {self.name}:\n{self.text}"


@dataclass(frozen=True, slots=True)
class MissingInstruction:
    """One that applies and cannot be read."""

    name: str
    said: Unreadable

    @property
    def value(self) -> list[str]:
        return [self.name, self.said.why]

    @property
    def rendered(self) -> str:
        return f"There are instructions in {self.name} that cannot be read: {self.said.reason}"


InstructionPart: TypeAlias = Instruction | MissingInstruction


class InstructionFile(NamedTuple):
    """A file by its name, and the root that it must not lead out of."""

    path: Path
    root: Path | None = None


class Instructions:
    """Finds and reads what applies at a location."""

    def __init__(self, settings: ContextConfig) -> None:
        self._settings = settings
        self._texts = TextFiles(settings.file_bytes_max)

    @property
    def urls(self) -> tuple[str, ...]:
        """What has to be fetched before an observation."""
        return tuple(one for one in self._settings.instructions if is_url(one))

    def observe(self, asked: ObserveContext, fetched: FetchedPages) -> ObservedSource | None:
        """All instructions, or None when there are none. Raises Unreadable, OSError.

        A file that no waiting will mend leaves sessions that know an earlier one with that. A new
        session would wait for ever: it begins with the others, and is told what is missing.
        """
        found = self._bounded(tuple(self._found(asked, fetched)))
        bad = next((one.said for one in found if isinstance(one, MissingInstruction)), None)
        if bad is not None:
            raise Unreadable(bad.why, bad.reason, instead=render(found))
        return render(found) if found else None

    def _bounded(self, found: tuple[InstructionPart, ...]) -> tuple[InstructionPart, ...]:
        """What goes beyond the limit of all together is missing."""
        texts = [len(one.text.encode()) if isinstance(one, Instruction) else 0 for one in found]
        limit = self._settings.total_bytes_max
        said = Unreadable("too-large", f"the instructions have {sum(texts)} bytes of {limit}")
        upto = accumulate(texts)
        return tuple(
            MissingInstruction(one.name, said)
            if isinstance(one, Instruction) and size > limit
            else one
            for one, size in zip(found, upto, strict=True)
        )

    def _found(self, asked: ObserveContext, fetched: FetchedPages) -> Iterator[InstructionPart]:
        directory = real_path(asked.location.directory)
        root = environment.git_root(directory) or directory
        seen: set[Path] = set()
        for path in self._paths(asked, directory, root):
            try:
                one = self._page(path, fetched) if isinstance(path, str) else self._file(path, seen)
            except Unreadable as error:
                if error.why not in PERMANENT:
                    raise
                yield MissingInstruction(
                    path if isinstance(path, str) else printable_path(path.path), error
                )
            else:
                if one is not None:
                    yield one

    def _page(self, url: str, fetched: FetchedPages) -> Instruction:
        said = fetched[url]
        if isinstance(said, Unreadable):
            raise said
        return Instruction(url, said)

    def _file(self, named: InstructionFile, seen: set[Path]) -> Instruction | None:
        """A file, the first time that it is met."""
        path, root = named
        target = resolve_file(path) if root is None else resolve_inside(path, root)
        if target in seen:
            return None
        seen.add(target)
        return Instruction(printable_path(path), self._texts.read(target))

    def _paths(
        self, asked: ObserveContext, directory: Path, root: Path
    ) -> Iterator[InstructionFile | str]:
        """In rendering order: global, project, configured, and where the session has read."""
        settings = self._settings
        if settings.global_file is not None and is_present(expand_home(settings.global_file)):
            yield InstructionFile(expand_home(settings.global_file))
        if settings.project:
            yield from _first_names(directories_up(directory, root), settings.names, root)
        for entry in settings.instructions:
            if is_url(entry):
                yield entry
            else:
                yield from _configured_files(entry, directory, root)
        if settings.project:
            yield from _first_names(
                directories_below(directory, asked.touched), settings.names, root
            )


def render(found: tuple[InstructionPart, ...]) -> ObservedSource:
    """The whole set: a change of any part is told by all that applies from then on."""
    text = "\n\n".join(one.rendered for one in found)
    return ObservedSource(
        key=KEY,
        value=[one.value for one in found],
        baseline=text,
        update=f"{CHANGED}\n\n{text}",
        removed=REVOKED,
    )


def directories_up(directory: Path, root: Path) -> tuple[Path, ...]:
    """A directory and those above it, up to the root; nothing if it is not in there."""
    if not directory.is_relative_to(root):
        return ()
    depth = len(directory.parts) - len(root.parts)
    return (directory, *islice(directory.parents, depth))


def directories_below(directory: Path, touched: tuple[str, ...]) -> tuple[Path, ...]:
    """The directories below a location on the way to where the session has read, outermost first."""
    base, found = str(directory).rstrip("/"), set[str]()
    for place in touched:
        target = os.path.realpath(place)
        # Ways to different places mostly begin alike: what was met is not gone again.
        while target.startswith(f"{base}/") and target not in found:
            found.add(target)
            target = os.path.dirname(target)  # noqa: PTH120 - before every turn, for many
    return tuple(sorted(Path(place) for place in found if place != str(directory)))


def is_url(entry: str) -> bool:
    return entry.startswith(("http://", "https://"))


def _first_names(
    places: tuple[Path, ...], names: tuple[str, ...], root: Path
) -> Iterator[InstructionFile]:
    """In each place the first name that is there."""
    for place in places:
        name = next((name for name in names if is_present(place / name)), None)
        if name is not None:
            yield InstructionFile(place / name, root)


def _configured_files(entry: str, directory: Path, root: Path) -> Iterator[InstructionFile]:
    """A file or a pattern. One that is relative belongs to the project and stays in it."""
    path = expand_home(entry)
    pattern = str(Path(glob.escape(str(directory))) / path)
    matches = islice(glob.iglob(pattern, recursive=True), MATCHES_MAX)  # noqa: PTH207
    for match in sorted(Path(one) for one in matches):
        if match.is_dir():
            continue
        yield InstructionFile(match, None if path.is_absolute() else root)
