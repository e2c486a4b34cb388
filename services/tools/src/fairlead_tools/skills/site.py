"""Skills on the web: an index, and a cache on disk that changes one whole skill at a time.

The cache holds complete downloads as `store/<version>-<token>/`, and a link `current/<name>` to the
download in use. A link is replaced in one step, so that no reader ever sees half a skill.
"""

import asyncio
import logging
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit
from uuid import uuid4

from pydantic import BaseModel, Field, ValidationError

from fairlead_tools.context.sources.files import TextFiles, Unreadable, printable_path
from fairlead_tools.context.web_pages import WebClient
from fairlead_tools.skills.skill import NAME, SKILL, InvalidSkill, Skill, parse

log = logging.getLogger(__name__)

SKILLS_PARALLEL: Final = 4
FILES_PARALLEL: Final = 8
TRIES: Final = 3
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]*|\.[A-Za-z0-9_][A-Za-z0-9._ -]*")


class SkillEntry(BaseModel):
    """One skill in an index."""

    name: str
    version: str | None = None
    files: tuple[str, ...] = Field(max_length=100)


class SkillIndex(BaseModel):
    """The skills of a site."""

    skills: tuple[SkillEntry, ...] = Field(max_length=500)


class SkillRefused(Exception):
    """A skill of an index that is not downloaded. The message says why."""


def file_urls(entry: SkillEntry, base: str) -> dict[str, str]:
    """The address of each file of a skill, by path. Raises SkillRefused."""
    if NAME.fullmatch(entry.name) is None:
        raise SkillRefused(f"{entry.name!r} is no name")
    if not {SKILL, f"{entry.name}.md"} & set(entry.files):
        raise SkillRefused(f"it lists neither {SKILL} nor {entry.name}.md")
    home = urlsplit(base)
    urls: dict[str, str] = {}
    for file in entry.files:
        if not all(_PART.fullmatch(part) for part in file.split("/")):
            raise SkillRefused(f"{file!r} is no path inside the skill")
        url = urljoin(base, f"{entry.name}/{file}")
        place = urlsplit(url)
        if (place.scheme, place.netloc) != (home.scheme, home.netloc):
            raise SkillRefused(f"{file!r} is not on the same site")
        urls[file] = url
    return urls


class SkillSite:
    """One site and its cache."""

    def __init__(self, url: str, cache: Path, web: WebClient) -> None:
        self._base = url if url.endswith("/") else f"{url}/"
        self._root = cache / "skills" / sha256(self._base.encode()).hexdigest()[:24]
        self._web = web
        self._skills = asyncio.Semaphore(SKILLS_PARALLEL)
        self._files = asyncio.Semaphore(FILES_PARALLEL)

    async def sync(self) -> None:
        """Bring the cache up to date. A skill whose update fails stays as it was."""
        try:
            index = SkillIndex.model_validate_json(
                await self._get(urljoin(self._base, "index.json"))
            )
        except (Unreadable, ValidationError) as error:
            log.warning(
                "skill index unreadable: the known skills stay",
                extra={"url": self._base, "reason": str(error)},
            )
            return
        await asyncio.to_thread(self._prepare)
        await asyncio.gather(*(self._update(entry) for entry in index.skills))
        await asyncio.to_thread(self._remove_others, {entry.name for entry in index.skills})

    def load(self, texts: TextFiles) -> tuple[Skill, ...]:
        """The skills in the cache, by name."""
        current = self._root / "current"
        links = sorted(current.iterdir()) if current.is_dir() else []
        loaded = (_load_cached(link.resolve(), link.name, texts) for link in links)
        return tuple(skill for skill in loaded if skill is not None)

    async def _update(self, entry: SkillEntry) -> None:
        async with self._skills:
            try:
                files = file_urls(entry, self._base)
                if entry.version is None or self._stored_digest(entry.name) != _digest(entry):
                    await self._download(entry, files)
            except (SkillRefused, Unreadable, OSError) as error:
                extra = {"url": self._base, "skill": entry.name[:64], "reason": str(error)}
                log.warning("skill not updated: the last version stays", extra=extra)

    async def _download(self, entry: SkillEntry, files: dict[str, str]) -> None:
        staged = self._root / "store" / f"{_digest(entry)}-{uuid4().hex}"
        try:
            async with asyncio.TaskGroup() as group:
                for path, url in files.items():
                    group.create_task(self._fetch(url, staged / path))
        except BaseExceptionGroup as failed:
            await asyncio.to_thread(shutil.rmtree, staged, ignore_errors=True)
            raise failed.exceptions[0] from failed
        await asyncio.to_thread(self._swap, entry, staged)

    async def _fetch(self, url: str, path: Path) -> None:
        async with self._files:
            raw = await self._get(url)
        await asyncio.to_thread(_write, path, raw)

    async def _get(self, url: str) -> bytes:
        for attempt in range(1, TRIES + 1):
            try:
                return await self._web.get(url)
            except Unreadable as error:
                if error.why not in {"unreachable", "timeout"} or attempt == TRIES:
                    raise
        raise AssertionError("the last try raised or returned")

    def _stored_digest(self, name: str) -> str | None:
        """The digest of the stored version."""
        link = self._root / "current" / name
        return link.resolve().name.partition("-")[0] if link.exists() else None

    def _prepare(self) -> None:
        """Make the directories and delete downloads that no link uses any more."""
        current, store = self._root / "current", self._root / "store"
        current.mkdir(parents=True, exist_ok=True)
        store.mkdir(exist_ok=True)
        used = {link.resolve() for link in current.iterdir()}
        for place in store.iterdir():
            if place.resolve() not in used:
                shutil.rmtree(place, ignore_errors=True)

    def _swap(self, entry: SkillEntry, staged: Path) -> None:
        link = self._root / f".link-{uuid4().hex}"
        link.symlink_to(staged)
        link.replace(self._root / "current" / entry.name)

    def _remove_others(self, names: set[str]) -> None:
        for link in (self._root / "current").iterdir():
            if link.name not in names:
                link.unlink(missing_ok=True)


def _digest(entry: SkillEntry) -> str:
    return sha256((entry.version or "").encode()).hexdigest()[:16]


def _load_cached(place: Path, name: str, texts: TextFiles) -> Skill | None:
    path = place / SKILL if (place / SKILL).is_file() else place / f"{name}.md"
    try:
        return parse(texts.read(path), path, name=name)
    except (Unreadable, InvalidSkill) as error:
        log.info(
            "file holds no valid skill: it is left out",
            extra={"path": printable_path(path), "reason": str(error)},
        )
        return None


def _write(path: Path, raw: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
