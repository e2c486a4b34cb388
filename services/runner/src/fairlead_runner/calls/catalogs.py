"""The tools that the tools service offers, as a runner knows them."""

import logging
import time
from math import inf
from typing import Final, NamedTuple, TypeAlias

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.context import ObserveContext
from fairlead_schema.ids import TenantId
from fairlead_schema.tools.location_view import LocationView
from fairlead_schema.tools.request import ListTools, ToolCatalog, ToolInfo

log = logging.getLogger(__name__)

_ANSWER = CommandAnswer[ToolCatalog]
CATALOGS_MAX: Final = 1024

_CacheKey: TypeAlias = tuple[TenantId, str, str | None, str]

OfferedTools: TypeAlias = dict[str, ToolInfo]
"""The tools that a location offers to an agent, by name, in the order of the offer."""


class KnownOffer(NamedTuple):
    """Some tools, when they were asked for on their own, and their hash if their worker named one."""

    tools: OfferedTools
    loaded_at: float = -inf
    hash: str | None = None


class Catalogs:
    """A cache of the tools that each location offers to each agent.

    The answer about a location brings its tools. Only a tools service of an earlier release is asked
    for them separately. A stale catalog does no harm: a call names the revision of its tool, and
    another revision refuses the call.
    """

    def __init__(
        self, eventlog: EventLog, *, pool: str, timeout_s: float, fresh_s: float = 1.0
    ) -> None:
        """`pool` is the default pool."""
        self._eventlog = eventlog
        self._pool = pool
        self._timeout_s = timeout_s
        self._fresh_s = fresh_s
        self._cache: dict[_CacheKey, KnownOffer] = {}
        self._changes = 0

    def forget(self, tenant: TenantId | None) -> None:
        """Ask anew for the tools of a tenant: they have changed. None: for those of all tenants."""
        self._changes += 1
        for key, offer in self._cache.items():
            if tenant in {None, key[0]}:
                self._cache[key] = offer._replace(loaded_at=-inf)

    def last_offer(self, question: ObserveContext, pool: str | None = None) -> KnownOffer | None:
        """The last offer of a location to an agent by a pool, however old it is."""
        return self._cache.get(self._key(question, pool))

    async def take(
        self, question: ObserveContext, view: LocationView, pool: str | None = None
    ) -> OfferedTools:
        """The tools in an answer about a location: new ones, the known ones, or those asked for."""
        known = self.last_offer(question, pool)
        if view.tools is not None:
            tools = {tool.name: tool for tool in view.tools}
            self._keep(question, pool, KnownOffer(tools, hash=view.tools_hash))
            return tools
        if view.tools_hash is not None and known is not None and known.hash == view.tools_hash:
            return known.tools
        return await self.load(question, pool)

    async def last_tools(self, question: ObserveContext, pool: str | None = None) -> OfferedTools:
        """The last offer, because the tools service does not answer; without one, ask for it."""
        known = self.last_offer(question, pool)
        return await self.load(question, pool) if known is None else known.tools

    async def load(self, question: ObserveContext, pool: str | None = None) -> OfferedTools:
        """The tools of a location for an agent, asked for on their own.

        While the tools service does not answer, its last answer holds: calls wait for the service,
        and a request without the tools would break the provider's cached prefix.
        """
        known = self.last_offer(question, pool) or KnownOffer({})
        if time.monotonic() - known.loaded_at < self._fresh_s:
            return known.tools
        changes = self._changes
        tools = await self._request(question, pool or self._pool)
        if tools is None:
            return known.tools
        loaded_at = time.monotonic() if changes == self._changes else -inf
        self._keep(question, pool, KnownOffer(tools, loaded_at))
        return tools

    def _keep(self, question: ObserveContext, pool: str | None, offer: KnownOffer) -> None:
        if len(self._cache) >= CATALOGS_MAX:
            self._cache.clear()
        self._cache[self._key(question, pool)] = offer

    def _key(self, question: ObserveContext, pool: str | None) -> "_CacheKey":
        return question.tenant, question.location.directory, question.agent, pool or self._pool

    async def _request(self, question: ObserveContext, pool: str) -> OfferedTools | None:
        """The answer of the tools service; None if it does not answer."""
        command = ListTools(
            location=question.location, agent=question.agent, tenant=question.tenant
        )
        body = command.model_dump_json(by_alias=True).encode()
        try:
            answer = await self._eventlog.requests.request(
                subjects.tool_catalog(pool), body, timeout_s=self._timeout_s
            )
            catalog = _ANSWER.model_validate_json(answer).data
        except (LogError, ValueError) as error:
            extra = {
                "location": question.location.directory,
                "pool": pool,
                "reason": str(error),
            }
            log.info("tools service does not answer: its last tools are offered", extra=extra)
            return None
        return None if catalog is None else {tool.name: tool for tool in catalog.tools}
