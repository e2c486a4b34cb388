"""A runner as a process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette

from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.session_cache import SessionCache
from fairlead_eventlog.session_writer import SessionWriter
from fairlead_llm.errors import InvalidTransport
from fairlead_llm.transport import clients
from fairlead_runner.model_target import transports
from fairlead_runner.runner_context import RunnerContext
from fairlead_runner.settings import RunnerSettings
from fairlead_runner.tool_calls import Catalogs
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.supervise import cancel_and_wait
from fairlead_session.fold.snapshot import SESSION_FOLD


@asynccontextmanager
async def work(settings: RunnerSettings, health: Health) -> AsyncIterator[None]:
    """Connect, take wakes, and on the way out finish what is under way and hand over."""
    config = settings.config
    async with (
        connect(settings.nats_url, name="fairlead-runner") as eventlog,
        clients(keepalive_max=config.runner.sessions_max) as reach,
    ):
        health.depend("nats", eventlog.complaint)
        # A client reads the trusted authorities, for tenths of a second: not while sessions wait.
        for transport in transports(config):
            with suppress(InvalidTransport):  # The turn that needs it says so.
                reach(transport)
        runner = ids.runner_id()
        folded = SessionCache(
            eventlog.log,
            eventlog.snapshots,
            SESSION_FOLD,
            capacity=config.runner.cache_sessions_max,
        )
        catalogs = Catalogs(
            eventlog, pool=config.tools.pool, timeout_s=config.runner.observe_timeout_s
        )
        writer = SessionWriter(eventlog.log, folded, ids)
        context = RunnerContext(runner, eventlog, folded, writer, reach, settings, catalogs)
        watch = WakeConsumer(context)
        await eventlog.liveness.answer_pings(runner, watch.nudge)
        standing = asyncio.create_task(watch.run())
        ringing = asyncio.create_task(watch.fire_timers())
        beating = asyncio.create_task(watch.heartbeat())
        try:
            yield
        finally:
            await cancel_and_wait(standing, ringing)
            await watch.shutdown()
            await cancel_and_wait(beating)


def build(settings: RunnerSettings) -> Starlette:
    """The ASGI application of a runner. Nothing connects until it starts."""
    health = Health()
    return application(lambda: work(settings, health), health)
