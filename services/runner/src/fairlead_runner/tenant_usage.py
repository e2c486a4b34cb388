"""The usage of tenants that have a limit, as the projector counts it."""

import math
import time

from pydantic_core import from_json

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_runner.settings import RunnerSettings
from fairlead_schema import subjects
from fairlead_schema.ids import TenantId
from fairlead_session.execution.budget import TenantUsage


class TenantUsageReader:
    """Asks the projector for the usage of tenants, and remembers its answers for a while."""

    def __init__(self, eventlog: EventLog, settings: RunnerSettings) -> None:
        self._eventlog = eventlog
        self._settings = settings
        self._cache: dict[TenantId, tuple[float, TenantUsage]] = {}

    async def load(self, tenant: TenantId) -> TenantUsage:
        """The usage of a tenant, about a second old. A tenant without a limit is never asked for.

        While the projector does not answer, its last answer holds for a while, because a projector
        that restarts is back soon. After that the usage is unknown.
        """
        limit, timings = self._settings.tenant(tenant), self._settings.timings
        if limit.cost is None and limit.tokens is None:
            return TenantUsage()
        loaded_at, cached = self._cache.get(tenant, (-math.inf, None))
        age_s = time.monotonic() - loaded_at
        if cached is not None and age_s < timings.usage_fresh_s:
            return cached
        used = await self._request(tenant)
        if used is not None:
            usage = TenantUsage(*used, limit.cost, limit.tokens)
            self._cache[tenant] = (time.monotonic(), usage)
            return usage
        if cached is not None and age_s < timings.usage_kept_s:
            return cached
        return TenantUsage(cost_max=limit.cost, tokens_max=limit.tokens, is_known=False)

    async def _request(self, tenant: TenantId) -> tuple[float, int] | None:
        """The projector's cost and tokens; None if it does not answer."""
        timeout_s = self._settings.config.runner.observe_timeout_s
        try:
            answer = await self._eventlog.requests.request(
                subjects.tenant_usage(tenant), b"", timeout_s=timeout_s
            )
            data = from_json(answer)["data"]
            return float(data["cost"]), int(data["tokens"])
        except (LogError, ValueError, KeyError, TypeError):
            return None
