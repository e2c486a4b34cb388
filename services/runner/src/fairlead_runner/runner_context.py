"""What every drain of one runner shares."""

import math
import time
from dataclasses import dataclass, field
from typing import Final

from pydantic_core import from_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import SessionWriter
from fairlead_llm.transport import Clients
from fairlead_runner.settings import RunnerSettings
from fairlead_runner.tool_calls import Catalogs
from fairlead_schema import subjects
from fairlead_schema.ids import RunnerId, TenantId
from fairlead_session.execution.budget import TenantUsage
from fairlead_session.state.session import Session

SPENDING_FRESH_S: Final = 1.0
# A projector that restarts is away for less; without it a limit must not be passed unseen.
SPENDING_KEPT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class RunnerContext:
    """The runner's name, its connections and its settings."""

    runner: RunnerId
    eventlog: EventLog
    sessions: SessionCache[Session]
    session_writer: SessionWriter[Session]
    clients: Clients
    settings: RunnerSettings
    catalogs: Catalogs
    _spent: dict[TenantId, tuple[float, TenantUsage]] = field(default_factory=dict)

    @property
    def pool(self) -> str:
        return self.settings.config.tools.pool

    async def spending(self, tenant: TenantId) -> TenantUsage:
        """What the tenant has used, as of about a second ago; asked only where a limit is set.

        While nobody can say, the last known sum stands for a while; then nothing is known.
        """
        limit = self.settings.tenant(tenant)
        if limit.cost is None and limit.tokens is None:
            return TenantUsage()
        at, last = self._spent.get(tenant, (-math.inf, None))
        age_s = time.monotonic() - at
        if last is not None and age_s < SPENDING_FRESH_S:
            return last
        used = await self._used(tenant)
        if used is not None:
            spending = TenantUsage(*used, limit.cost, limit.tokens)
            self._spent[tenant] = (time.monotonic(), spending)
            return spending
        if last is not None and age_s < SPENDING_KEPT_S:
            return last
        return TenantUsage(cost_max=limit.cost, tokens_max=limit.tokens, known=False)

    async def _used(self, tenant: TenantId) -> tuple[float, int] | None:
        """The projector's sum; None when nobody can say."""
        timeout_s = self.settings.config.runner.observe_timeout_s
        try:
            answer = await self.eventlog.requests.request(
                subjects.tenant_usage(tenant), b"", timeout_s=timeout_s
            )
            data = from_json(answer)["data"]
            return float(data["cost"]), int(data["tokens"])
        except (LogError, ValueError, KeyError, TypeError):
            return None
