"""The hooks service as a process: lanes of webhooks, the clock of schedules, and its verbs over NATS."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_eventlog.jetstream.client import open_client
from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_eventlog.refusals import LOG_REFUSALS
from fairlead_hooks.schedules.claim import RunClaims
from fairlead_hooks.schedules.clock import ScheduleClock
from fairlead_hooks.schedules.rights import CurrentRights
from fairlead_hooks.schedules.run import RunSender
from fairlead_hooks.settings import HooksSettings
from fairlead_hooks.webhooks.lanes import Lanes
from fairlead_hooks.webhooks.verbs import VERBS, WebhookVerbs, serve_webhook_verbs
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.rpc.server import RpcServer
from fairlead_service.supervise import cancel_and_wait, report_defects, supervise


class HooksService:
    """Sends what is due: events to receivers, prompts to sessions."""

    def __init__(self, settings: HooksSettings, local: LocalRequests | None = None) -> None:
        """Read the keys file. Raises ConfigError."""
        self._settings = settings
        self._local = local
        self._worker_id = ids.worker_id()
        self._rights = CurrentRights(settings.auth, settings.hooks.grant_days)
        self.server = RpcServer(
            partial(open_client, settings.nats), name="hooks", refusals=LOG_REFUSALS, local=local
        )
        serve_webhook_verbs(self.server)

    @asynccontextmanager
    async def work(self, health: Health) -> AsyncIterator[None]:
        """Connect and send until the process ends. Attempts under way end first."""
        async with connect(
            self._settings.nats, name="fairlead-hooks", local=self._local
        ) as eventlog:
            health.depend("nats", eventlog.complaint)
            self.server.provide(VERBS, WebhookVerbs(eventlog, self._settings))
            await self.server.start()
            lanes, clock = Lanes(eventlog, self._settings), self._clock(eventlog)
            report = report_defects(LogError)
            tasks = [
                asyncio.create_task(supervise("lanes of webhooks", lanes.run, report=report)),
                asyncio.create_task(supervise("clock of schedules", clock.run, report=report)),
            ]
            try:
                yield
            finally:
                await cancel_and_wait(*tasks)
                await asyncio.gather(lanes.close(), clock.close())
                await self.server.stop()

    def _clock(self, eventlog: EventLog) -> ScheduleClock:
        hooks = self._settings.hooks
        claims = RunClaims(
            eventlog.hook_states,
            self._worker_id,
            claim_ms=int(self._settings.claim_s * 1000),
            late_ms=int(hooks.late_s * 1000),
        )
        sender = RunSender(eventlog, self._rights, hooks.patience_s)
        return ScheduleClock(eventlog, claims, sender, refresh_s=hooks.refresh_s)


def build(settings: HooksSettings, local: LocalRequests | None = None) -> Starlette:
    """The ASGI application of the hooks service. Nothing connects until it starts. Raises ConfigError."""
    health = Health()
    hooks = HooksService(settings, local)
    document = hooks.server.asyncapi_route("Fairlead hooks")
    return application("hooks", lambda: hooks.work(health), health, [document])
