"""Observes a location: one coherent sample of all its sources, in rendering order."""

import asyncio
import time
from typing import Final

from fairlead_schema.context import ContextSample, Observation, ObserveContext
from fairlead_service.config.configuration import Config
from fairlead_tools.calls.rules import agent_rules
from fairlead_tools.context.reader import ReadSource, SourceReader, unavailable
from fairlead_tools.context.registered import RegisteredSources
from fairlead_tools.context.sources import date, environment, instructions, references, skills
from fairlead_tools.context.sources.instructions import FetchedPages, Instructions
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
"""How a baseline reads."""


class Observer:
    """Everything that can be said of the locations that this process serves."""

    def __init__(self, config: Config, plugins: RegisteredSources | None = None) -> None:
        self.config = config
        self._web = WebClient(config.context)
        self._pages = WebPages(config.context, self._web)
        self._instructions = Instructions(config.context)
        self._reading = SourceReader(config.context.timeout_s)
        self.catalog = SkillCatalog(config, self._web)
        self.registered_sources = plugins

    async def observe(self, asked: ObserveContext) -> ContextSample:
        """Every source, observed now, in order: built-in ones first, then those of other services.

        One that cannot be read is unavailable, never left out. Raises LogError if nobody knows
        what other services have registered.
        """
        began = time.perf_counter()
        fetched, _ = await asyncio.gather(
            self._pages.texts(self._instructions.urls), self.catalog.refresh()
        )
        plugged, read = await asyncio.gather(
            self._plugged(asked),
            self._reading.sources(asked.location.directory, self._reads(asked, fetched)),
        )
        own = {**read, date.KEY: self._date(asked)}
        own[references.KEY] = references.observe(self.config.reference)
        built_in = (own[key] for key in ORDER)
        observations = (*(one for one in built_in if one is not None), *plugged)
        OBSERVATION_SECONDS.observe(time.perf_counter() - began)
        return ContextSample(observations=observations)

    async def close(self) -> None:
        """Let go of what was opened."""
        await self._pages.close()
        await self.catalog.close()
        await self._web.close()

    def _reads(self, asked: ObserveContext, fetched: FetchedPages) -> dict[str, ReadSource]:
        """What has to look at the disk."""
        permitted = agent_rules(self.config, asked.agent)
        return {
            environment.KEY: lambda: environment.observe(asked.location),
            instructions.KEY: lambda: self._instructions.observe(asked, fetched),
            skills.KEY: lambda: skills.observe(self.catalog.load(asked.location), permitted),
        }

    def _date(self, asked: ObserveContext) -> Observation:
        timezone = asked.timezone or self.config.context.timezone
        try:
            return date.observe(date.today(timezone))
        except (KeyError, ValueError, OSError) as error:
            return unavailable(date.KEY, "unreadable", f"time zone {timezone}: {error}")

    async def _plugged(self, asked: ObserveContext) -> tuple[Observation, ...]:
        return (
            () if self.registered_sources is None else await self.registered_sources.observe(asked)
        )
