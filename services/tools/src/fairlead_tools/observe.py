"""Observes a location: one coherent sample of all its sources, in rendering order."""

import asyncio
import logging
import time

from fairlead_schema.context import ContextSample, Observation, ObserveContext
from fairlead_service.config import Config
from fairlead_tools.metrics import OBSERVING
from fairlead_tools.plugins import Plugins
from fairlead_tools.reading import Reading, unavailable
from fairlead_tools.rules import rules
from fairlead_tools.skills.catalog import Catalog
from fairlead_tools.sources import date, environment, instructions, references, skills
from fairlead_tools.sources.instructions import Instructions
from fairlead_tools.web import Pages, Web

log = logging.getLogger(__name__)


class Observer:
    """Everything that can be said of the locations that this process serves."""

    def __init__(self, config: Config, plugins: Plugins | None = None) -> None:
        self.config = config
        self._web = Web(config.context)
        self._pages = Pages(config.context, self._web)
        self._instructions = Instructions(config.context)
        self._reading = Reading(config.context.timeout_s)
        self.catalog = Catalog(config, self._web)
        self.plugins = plugins

    async def observe(self, asked: ObserveContext) -> ContextSample:
        """Every source, observed now, in order: built-in ones first, then those of other services.

        One that cannot be read is unavailable, never left out. Raises LogError if nobody knows
        what other services have registered.
        """
        began = time.perf_counter()
        place = asked.location.directory
        seen = await asyncio.gather(
            self._reading.source(
                environment.KEY, place, lambda: environment.observe(asked.location)
            ),
            self._date(asked),
            self._told(asked, place),
            self._skills(asked, place),
            self._references(),
            self._plugged(asked),
        )
        *own, plugged = seen
        observations = (*(one for one in own if one is not None), *plugged)
        OBSERVING.observe(time.perf_counter() - began)
        return ContextSample(observations=observations)

    async def close(self) -> None:
        """Let go of what was opened."""
        await self._pages.close()
        await self.catalog.close()
        await self._web.close()

    async def _date(self, asked: ObserveContext) -> Observation:
        timezone = asked.timezone or self.config.context.timezone
        try:
            return date.observe(date.today(timezone))
        except (KeyError, ValueError, OSError) as error:
            return unavailable(date.KEY, "unreadable", f"time zone {timezone}: {error}")

    async def _told(self, asked: ObserveContext, place: str) -> Observation | None:
        fetched = await self._pages.texts(self._instructions.urls)
        return await self._reading.source(
            instructions.KEY, place, lambda: self._instructions.observe(asked, fetched)
        )

    async def _skills(self, asked: ObserveContext, place: str) -> Observation | None:
        await self.catalog.refresh()
        permitted = rules(self.config, asked.agent)
        return await self._reading.source(
            skills.KEY, place, lambda: skills.observe(self.catalog.load(asked.location), permitted)
        )

    async def _references(self) -> Observation | None:
        return references.observe(self.config.reference)

    async def _plugged(self, asked: ObserveContext) -> tuple[Observation, ...]:
        return () if self.plugins is None else await self.plugins.observe(asked)
