"""The skills of a location. Of several skills with one name the later source wins."""

import asyncio
import logging
import time
from collections.abc import Iterator
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Final

from fairlead_schema.ids import TenantId
from fairlead_schema.location import LocationRef
from fairlead_service.config.configuration import Config
from fairlead_service.supervise import cancel_and_wait
from fairlead_tools.context.project import ObservedProject, ProjectFinder, directories_up
from fairlead_tools.context.sources.files import TextFiles, expand_home, printable_path
from fairlead_tools.context.sources.instructions import is_url
from fairlead_tools.context.watch.looked_paths import depend_on_unwatched, look_at
from fairlead_tools.context.web_pages import WebClient, cache_directory
from fairlead_tools.skills import directory
from fairlead_tools.skills.site import SkillSite
from fairlead_tools.skills.skill import Skill, parse

log = logging.getLogger(__name__)

FOLDERS: Final = ("skill", "skills")
PROJECT: Final = ".fairlead"
BUILT_IN: Final = "configure-fairlead"


class SkillCatalog:
    """The skills of every location that this process serves."""

    def __init__(self, config: Config, web: WebClient) -> None:
        self._settings = config.skills
        base = config.skills.config_directory
        self._operator_folders = (
            tuple(expand_home(base) / folder for folder in FOLDERS) if base else ()
        )
        self.projects = ProjectFinder(config)
        self._refresh_s = config.context.refresh_s
        self._first_s = config.context.timeout_s
        self._texts = TextFiles(config.context.file_bytes_max)
        sources = dict.fromkeys(config.skills.sources)
        cache = cache_directory(config.context) if any(map(is_url, sources)) else Path()
        self._sites = {url: SkillSite(url, cache, web) for url in sources if is_url(url)}
        self._synced_at = float("-inf")
        self._syncing: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Synchronise the sites from time to time. Only the first time waits for the answer."""
        if not self._sites or time.monotonic() - self._synced_at < self._refresh_s:
            return
        if self._syncing is None or self._syncing.done():
            self._syncing = asyncio.create_task(self._sync())
        if self._synced_at == float("-inf"):
            await asyncio.wait({self._syncing}, timeout=self._first_s)

    async def close(self) -> None:
        """Stop the downloads."""
        if self._syncing is not None:
            await cancel_and_wait(self._syncing)

    @property
    def has_sites(self) -> bool:
        """Whether any skills come from the web."""
        return bool(self._sites)

    def load(self, tenant: TenantId, location: LocationRef) -> tuple[Skill, ...]:
        """All skills of a location, by name. Reads the disk. Raises Unreadable, OSError."""
        return self.load_project(self.projects.find(tenant, location))

    def load_project(self, project: ObservedProject) -> tuple[Skill, ...]:
        """All skills of a project, by name. Reads the disk. Raises Unreadable, OSError."""
        skills = {BUILT_IN: builtin_skill()}
        for source in dict.fromkeys(self._sources(project)):
            site = self._sites.get(str(source)) if isinstance(source, str) else None
            if site is not None:
                depend_on_unwatched("the skills of a site")
            loaded = (
                site.load(self._texts)
                if site is not None
                else directory.load(Path(source), self._texts)
            )
            skills |= {skill.name: skill for skill in loaded}
        return tuple(skills[name] for name in sorted(skills))

    async def _sync(self) -> None:
        await asyncio.gather(*(site.sync() for site in self._sites.values()))
        self._synced_at = time.monotonic()

    def _sources(self, project: ObservedProject) -> Iterator[Path | str]:
        """The operator's directory, the project from its root down, then the configured sources.

        No directory of an untrusted project is among them, and none that leads out of the project.
        """
        settings = self._settings
        yield from self._operator_folders
        if settings.project and project.is_trusted:
            for above in reversed(directories_up(project.directory, project.root)):
                look_at(above / PROJECT)
                if (above / PROJECT).exists():
                    folders = (above / PROJECT / folder for folder in FOLDERS)
                    yield from filter(partial(_stays_inside, project), folders)
        for source in settings.sources:
            if is_url(source) or expand_home(source).is_absolute():
                yield source if is_url(source) else expand_home(source)
            elif project.is_trusted and _stays_inside(project, project.directory / source):
                yield project.directory / source


def _stays_inside(project: ObservedProject, folder: Path) -> bool:
    inside = project.is_inside(folder)
    if not inside:
        log.warning(
            "directory of skills leads out of its project: its skills do not count",
            extra={"directory": printable_path(folder)},
        )
    return inside


@cache
def builtin_skill() -> Skill:
    """The skill about this product."""
    text = files("fairlead_tools.skills").joinpath(f"{BUILT_IN}.md").read_text(encoding="utf-8")
    return parse(text, None, name=BUILT_IN)
