"""Builds the gateway: the one place that knows both the web framework and the servers behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from fairlead_eventlog.jetstream import connect
from fairlead_gateway.http import serving
from fairlead_gateway.log.link import Link
from fairlead_gateway.reads.postgres import PostgresReadModel
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.routes.server import openapi
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_service.health import Health
from fairlead_service.process import application


def build(settings: GatewaySettings) -> Starlette:
    """The ASGI application. Nothing connects before it starts; `state.runtime` is its inside."""
    read = PostgresReadModel(
        settings.dsn,
        connections_max=settings.pool_connections_max,
        timeout_s=settings.read_timeout_s,
    )
    link = Link(
        lambda: connect.connect(
            settings.nats_url, name="gateway", timeout_s=settings.request_timeout_s
        )
    )
    health = Health()
    health.depend("nats", link.complaint)
    health.depend("postgres", read.complaint)

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        async with read.opened(), link.opened():
            yield

    runtime = Runtime(settings, link.now, read)
    routes = [*serving.routes(runtime, OPERATIONS), openapi.route(OPERATIONS)]
    app = serving.dress(application(work, health, routes))
    app.state.runtime = runtime
    return app
