"""The process of a runner: its connections and its loops."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette

from fairlead_eventlog.jetstream.connect import connect
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_llm.errors import InvalidTransport
from fairlead_llm.transport import clients
from fairlead_runner.runner_context import build_context
from fairlead_runner.settings import RunnerSettings
from fairlead_runner.transforms.plugins import Plugin, load_plugins
from fairlead_runner.turn.model_target import transports
from fairlead_runner.wake_consumer import WakeConsumer
from fairlead_service import ids
from fairlead_service.health import Health
from fairlead_service.process import application
from fairlead_service.rpc.service_api import ServiceApi
from fairlead_service.supervise import cancel_and_wait

log = logging.getLogger(__name__)


@asynccontextmanager
async def work(
    settings: RunnerSettings,
    health: Health,
    plugins: tuple[Plugin, ...],
    local: LocalRequests | None = None,
) -> AsyncIterator[None]:
    """Connect and consume wakes; at the end finish the current turns and hand the sessions over."""
    config = settings.config
    async with (
        connect(
            settings.nats,
            name="fairlead-runner",
            append_patience_s=config.nats.patience_s,
            local=local,
        ) as eventlog,
        clients(keepalive_max=config.runner.sessions_max) as get_client,
    ):
        health.depend("nats", eventlog.complaint)
        # A new client reads the trusted certificates for tenths of a second: make it before any wake.
        for transport in transports(config):
            with suppress(InvalidTransport):  # The turn that needs the transport reports the error.
                get_client(transport)
        runner = ids.runner_id()
        context = build_context(runner, eventlog, get_client, settings, plugins)
        await eventlog.tool_registrations.watch(context.catalogs.forget)
        await eventlog.transforms.watch(context.transforms.registered.forget)
        consumer = WakeConsumer(context)
        await eventlog.open_texts.start_answering(runner, context.find_open_texts)
        await eventlog.liveness.start_answering(runner, consumer.nudge)
        described = ServiceApi("fairlead-runner", "Fairlead runner", id=runner)
        await eventlog.self_description.start_answering(described.answers())
        consuming = asyncio.create_task(consumer.run())
        timers = asyncio.create_task(consumer.fire_timers())
        heartbeat = asyncio.create_task(consumer.heartbeat())
        # Claims in the log name a runner by this id.
        log.info("runner takes wakes", extra={"runner": runner})
        try:
            yield
        finally:
            await cancel_and_wait(consuming, timers)
            await consumer.shutdown()
            await cancel_and_wait(heartbeat)


def build(settings: RunnerSettings, local: LocalRequests | None = None) -> Starlette:
    """The ASGI application of a runner. Nothing connects until it starts.

    Raises ConfigError if this machine lacks what the configuration names.
    """
    health, plugins = Health(), load_plugins(settings.config)
    return application("runner", lambda: work(settings, health, plugins, local), health)
