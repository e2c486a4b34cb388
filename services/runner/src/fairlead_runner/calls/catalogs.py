"""The tools that the tools service offers, as a runner knows them."""

import logging
import time
from math import inf
from typing import Final

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.ids import TenantId
from fairlead_schema.subjects import Address
from fairlead_schema.tools.request import ListTools, ToolCatalog, ToolInfo
from fairlead_session.state.session import Session

log = logging.getLogger(__name__)

_ANSWER = CommandAnswer[ToolCatalog]
CATALOGS_MAX: Final = 1024


class Catalogs:
    """A cache of the tools that each location offers to each agent.

    A stale catalog does no harm: a call names the revision of its tool, and another revision
    refuses the call.
    """

    def __init__(
        self, eventlog: EventLog, *, pool: str, timeout_s: float, fresh_s: float = 1.0
    ) -> None:
        self._eventlog = eventlog
        self._pool = pool
        self._timeout_s = timeout_s
        self._fresh_s = fresh_s
        self._cache: dict[tuple[str, str, str], tuple[float, dict[str, ToolInfo]]] = {}
        self._changes = 0

    def forget(self, tenant: TenantId | None) -> None:
        """Ask anew for the tools of a tenant: they have changed. None: for those of all tenants."""
        self._changes += 1
        for key, (_loaded_at, tools) in self._cache.items():
            if tenant in {None, key[0]}:
                self._cache[key] = (-inf, tools)

    async def load(self, at: Address, session: Session, agent: str) -> dict[str, ToolInfo]:
        """The tools of the session's location for an agent.

        While the tools service does not answer, its last answer holds: calls wait for the service,
        and a request without the tools would break the provider's cached prefix.
        """
        assert session.profile is not None, "a session that drains was created"
        key = (at.tenant, session.profile.location.directory, agent)
        loaded_at, cached = self._cache.get(key, (-inf, {}))
        if time.monotonic() - loaded_at < self._fresh_s:
            return cached
        question = ListTools(location=session.profile.location, agent=agent, tenant=at.tenant)
        changes = self._changes
        tools = await self._request(question)
        if tools is None:
            return cached
        if len(self._cache) >= CATALOGS_MAX:
            self._cache.clear()
        self._cache[key] = (time.monotonic() if changes == self._changes else -inf, tools)
        return tools

    async def _request(self, question: ListTools) -> dict[str, ToolInfo] | None:
        """The answer of the tools service; None if it does not answer."""
        body = question.model_dump_json(by_alias=True).encode()
        try:
            answer = await self._eventlog.requests.request(
                subjects.tool_catalog(self._pool), body, timeout_s=self._timeout_s
            )
            catalog = _ANSWER.model_validate_json(answer).data
        except (LogError, ValueError) as error:
            extra = {"location": question.location.directory, "reason": str(error)}
            log.info("tools service does not answer: its last tools are offered", extra=extra)
            return None
        return None if catalog is None else {tool.name: tool for tool in catalog.tools}
