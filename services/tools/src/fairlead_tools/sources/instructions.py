"""`core/instructions`: every instruction file that applies, as one source."""

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from fairlead_schema.context import ObserveContext, Observed
from fairlead_service.observing import Context
from fairlead_tools.sources import environment
from fairlead_tools.sources.files import (
    Texts,
    Unreadable,
    contained,
    home,
    present,
    real,
    resolved,
    shown,
)

KEY: Final = "core/instructions"
MATCHES_MAX: Final = 200

CHANGED: Final = (
    "The instructions have changed. Those below replace all that you were given before:"
)
REVOKED: Final = "The instruction files you were given before no longer apply; there are none now."

Fetched: TypeAlias = Mapping[str, str | Unreadable]
"""What the web said, by address."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One file or page of instructions."""

    name: str
    text: str

    @property
    def rendered(self) -> str:
        return f"Instructions from {self.name}:\n{self.text}"


class Instructions:
    """Finds and reads what applies at a location."""

    def __init__(self, settings: Context) -> None:
        self._settings = settings
        self._texts = Texts(settings.file_bytes_max)

    @property
    def urls(self) -> tuple[str, ...]:
        """What has to be fetched before an observation."""
        return tuple(one for one in self._settings.instructions if is_url(one))

    def observe(self, asked: ObserveContext, fetched: Fetched) -> Observed | None:
        """All instructions, or None when there are none. Raises Unreadable, OSError."""
        found = tuple(self._found(asked, fetched))
        size = sum(len(one.text.encode()) for one in found)
        if size > self._settings.total_bytes_max:
            limit = self._settings.total_bytes_max
            raise Unreadable("too-large", f"the instructions have {size} bytes of {limit}")
        return rendered(found) if found else None

    def _found(self, asked: ObserveContext, fetched: Fetched) -> Iterator[Instruction]:
        directory = real(asked.location.directory)
        root = environment.root(directory) or directory
        seen: set[Path] = set()
        for path in self._paths(asked, directory, root):
            if isinstance(path, str):
                said = fetched[path]
                if isinstance(said, Unreadable):
                    raise said
                yield Instruction(path, said)
                continue
            target = resolved(path)
            if target not in seen:
                seen.add(target)
                yield Instruction(shown(path), self._texts.read(target))

    def _paths(self, asked: ObserveContext, directory: Path, root: Path) -> Iterator[Path | str]:
        """In rendering order: global, project, configured, and where the session has read."""
        settings = self._settings
        if settings.global_file is not None and present(home(settings.global_file)):
            yield home(settings.global_file)
        if settings.project:
            yield from _named(upward(directory, root), settings.names, root)
        for entry in settings.instructions:
            if is_url(entry):
                yield entry
            else:
                yield from _configured(entry, directory, root)
        if settings.project:
            yield from _named(below(directory, asked.touched), settings.names, root)


def rendered(found: tuple[Instruction, ...]) -> Observed:
    """The whole set: a change of any part is told by all that applies from then on."""
    text = "\n\n".join(one.rendered for one in found)
    return Observed(
        key=KEY,
        value=[[one.name, sha256(one.text.encode()).hexdigest()] for one in found],
        baseline=text,
        update=f"{CHANGED}\n\n{text}",
        removed=REVOKED,
    )


def upward(directory: Path, root: Path) -> tuple[Path, ...]:
    """A directory and those above it, up to the root; nothing if it is not in there."""
    if not directory.is_relative_to(root):
        return ()
    above = (directory, *directory.parents)
    return tuple(place for place in above if place.is_relative_to(root))


def below(directory: Path, touched: tuple[str, ...]) -> tuple[Path, ...]:
    """The directories below a location on the way to where the session has read, outermost first."""
    targets = (real(place) for place in touched)
    return tuple(
        sorted(
            {
                place
                for target in targets
                for place in upward(target, directory)
                if place != directory
            }
        )
    )


def is_url(entry: str) -> bool:
    return entry.startswith(("http://", "https://"))


def _named(places: tuple[Path, ...], names: tuple[str, ...], root: Path) -> Iterator[Path]:
    """In each place the first name that is there, if it stays inside the root."""
    for place in places:
        name = next((name for name in names if present(place / name)), None)
        if name is not None:
            contained(place / name, root)
            yield place / name


def _configured(entry: str, directory: Path, root: Path) -> Iterator[Path]:
    """A file or a pattern. One that is relative belongs to the project and stays in it."""
    path = home(entry)
    pattern = str(Path(glob.escape(str(directory))) / path)
    matches = islice(glob.iglob(pattern, recursive=True), MATCHES_MAX)  # noqa: PTH207
    for match in sorted(Path(one) for one in matches):
        if match.is_dir():
            continue
        if not path.is_absolute():
            contained(match, root)
        yield match
