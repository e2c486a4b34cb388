"""The project at a location: how far up its files are read, and whether they count."""

import logging
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_service.locations import LocationRefused, containing_root, locate_in_root
from fairlead_tools.context.sources.files import Unreadable, printable_path, real_path
from fairlead_tools.context.watch.looked_paths import look_at

log = logging.getLogger(__name__)

REPORTED_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class ObservedProject:
    """The directory of a session and the root of its project, with all links followed."""

    directory: Path
    root: Path
    has_git: bool
    is_trusted: bool
    """Whether the instructions and skills in the project count."""

    def is_inside(self, path: Path) -> bool:
        """Whether a path stays in the project once its links are followed."""
        return real_path(path).is_relative_to(self.root)


class ProjectFinder:
    """Finds projects inside the configured roots."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._reported: set[Path] = set()

    def find(self, tenant: TenantId, location: LocationRef) -> ObservedProject:
        """The project at a location. Raises Unreadable for a location outside the tenant's roots.

        The project's root is the nearest directory with a `.git`. The search for it ends at the
        configured root, so that nothing above that root is ever read.
        """
        roots = self._config.roots(tenant)
        look_at(location.directory, *roots, *self._config.context.trusted)
        place = locate_in_root(roots, location)
        if isinstance(place, LocationRefused):
            raise Unreadable("outside", place.message)
        directory = Path(place.directory)
        repository = git_root(directory, Path(place.root))
        return ObservedProject(
            directory=directory,
            root=repository or directory,
            has_git=repository is not None,
            is_trusted=self._is_trusted(directory),
        )

    def _is_trusted(self, directory: Path) -> bool:
        settings = self._config.context
        if settings.trust == "all" or containing_root(settings.trusted, str(directory)) is not None:
            return True
        if directory not in self._reported:
            if len(self._reported) >= REPORTED_MAX:
                self._reported.clear()
            self._reported.add(directory)
            log.info(
                "project is not in context.trusted: its instructions and skills do not count",
                extra={"directory": printable_path(directory)},
            )
        return False


def git_root(directory: Path, top: Path) -> Path | None:
    """The nearest directory with a git repository, from a directory upwards to the top one."""
    return next((place for place in directories_up(directory, top) if _has_git(place)), None)


def directories_up(directory: Path, root: Path) -> tuple[Path, ...]:
    """A directory and its parents up to the root, nearest first; empty outside the root."""
    if not directory.is_relative_to(root):
        return ()
    depth = len(directory.parts) - len(root.parts)
    return (directory, *islice(directory.parents, depth))


def _has_git(place: Path) -> bool:
    look_at(place / ".git")
    return (place / ".git").exists()
