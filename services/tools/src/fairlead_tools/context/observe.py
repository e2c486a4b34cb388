"""Observes a location: one sample of all its sources, in rendering order."""

import asyncio
import time
from collections.abc import Coroutine
from functools import cache, partial
from typing import Any, Final

from fairlead_schema.context import ContextSample, Observation, ObserveContext
from fairlead_service.config.configuration import Config
from fairlead_tools.calls.permission import agent_rules
from fairlead_tools.context.reader import AfterRead, ReadSource, SourceReader, unavailable
from fairlead_tools.context.registered import RegisteredSources
from fairlead_tools.context.sources import date, environment, instructions, references, skills
from fairlead_tools.context.sources.instructions import FetchedPages, Instructions
from fairlead_tools.context.watch.warm_reads import ReadSources, WarmReads
from fairlead_tools.context.web_pages import WebClient, WebPages
from fairlead_tools.metrics import OBSERVATION_SECONDS
from fairlead_tools.skills.catalog import SkillCatalog

ORDER: Final = (
    environment.KEY,
    date.KEY,
    instructions.KEY,
    skills.KEY,
    references.KEY,
)
"""The order of the built-in sources in a baseline."""


class Observer:
    """Observes the locations that this process serves."""

    def __init__(self, config: Config, plugins: RegisteredSources | None = None) -> None:
        self.config = config
        self._web = WebClient(config.context)
        self._pages = WebPages(config.context, self._web)
        self._instructions = Instructions(config.context)
        self._reader = SourceReader(config.context.timeout_s)
        self._warm = WarmReads(config.context.watches_max)
        self.catalog = SkillCatalog(config, self._web)
        self.registered_sources = plugins
        self._references = references.observe(config.reference)

    async def observe(self, request: ObserveContext) -> ContextSample:
        """Observe every source: the built-in ones first, then those of other services.

        A source that cannot be read is unavailable, never left out. Raises LogError when the
        registered sources are unknown.
        """
        began = time.perf_counter()
        fetched = await self._fetch()
        place = (request.tenant, request.location, request.agent, request.read_directories)
        reading = self._warm.look(place, fetched, partial(self._read, request, fetched))
        registered, read = await self._beside_registered(request, reading)
        own = {**read, date.KEY: self._date(request), references.KEY: self._references}
        built_in = (own[key] for key in ORDER)
        present = (observation for observation in built_in if observation is not None)
        observations = (*present, *registered)
        OBSERVATION_SECONDS.observe(time.perf_counter() - began)
        return ContextSample(observations=observations)

    async def close(self) -> None:
        """Close the connections, end the watches and stop the downloads."""
        self._warm.close()
        await self._pages.close()
        await self.catalog.close()
        await self._web.close()

    async def _read(
        self, request: ObserveContext, fetched: FetchedPages, after: AfterRead
    ) -> ReadSources:
        """Read the disk."""
        reads = self._reads(request, fetched)
        return await self._reader.read_sources(request.location.directory, reads, after)

    def _reads(self, request: ObserveContext, fetched: FetchedPages) -> dict[str, ReadSource]:
        """The sources that read the disk."""
        permitted = agent_rules(self.config, request.agent)
        # All sources of a sample are of one project. A failure is not kept: each source tries again.
        find = cache(partial(self.catalog.projects.find, request.tenant, request.location))
        return {
            environment.KEY: lambda: environment.observe(request.location, find()),
            instructions.KEY: lambda: self._instructions.observe(request, find(), fetched),
            skills.KEY: lambda: skills.observe(self.catalog.load_project(find()), permitted),
        }

    def _date(self, request: ObserveContext) -> Observation:
        timezone = request.timezone or self.config.context.timezone
        try:
            return date.observe(date.today(timezone))
        except (KeyError, ValueError, OSError) as error:
            return unavailable(date.KEY, "unreadable", f"time zone {timezone}: {error}")

    async def _fetch(self) -> FetchedPages:
        """Look for pages and skills on the web, if the configuration names any."""
        urls = self._instructions.urls
        if not urls and not self.catalog.has_sites:
            return {}
        fetched, _ = await asyncio.gather(self._pages.texts(urls), self.catalog.refresh())
        return fetched

    async def _beside_registered(
        self, request: ObserveContext, reading: Coroutine[Any, Any, ReadSources]
    ) -> tuple[tuple[Observation, ...], ReadSources]:
        """The sources of other services, asked while this process reads its own."""
        registered = self.registered_sources
        try:
            has_registered = registered is not None and await registered.has_any(request.tenant)
        except BaseException:
            reading.close()
            raise
        if registered is None or not has_registered:
            return (), await reading
        observed, read = await asyncio.gather(registered.observe(request), reading)
        return observed, read
