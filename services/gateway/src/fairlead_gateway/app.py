"""Builds the gateway. Only this module knows both the web framework and the servers behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.jetstream import connect
from fairlead_eventlog.jetstream.local_requests import LocalRequests
from fairlead_gateway.a2a_view.operations import a2a_operations
from fairlead_gateway.ag_ui_view.operations import ag_ui_operations
from fairlead_gateway.console.assets import console_routes
from fairlead_gateway.console.provider_sign_in import provider_routes
from fairlead_gateway.console.sealed_cookie import Sealer
from fairlead_gateway.http import dispatch
from fairlead_gateway.http.principal_limits import PrincipalLimits
from fairlead_gateway.log.nats_connection import NatsConnection
from fairlead_gateway.opencode_view.operations import view_operations
from fairlead_gateway.reads.postgres import PostgresReadModel
from fairlead_gateway.routes import OPERATIONS
from fairlead_gateway.routes.server import openapi
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_service.health import Health
from fairlead_service.identity.authenticator import build_authenticator
from fairlead_service.process import OperationsPort, application
from fairlead_service.rpc.service_api import ServiceApi


def build(settings: GatewaySettings, local: LocalRequests | None = None) -> Starlette:
    """The ASGI application. It connects when it starts, and keeps its Runtime in `state.runtime`.

    Raises ConfigError if nobody could authenticate.
    """
    read_model = PostgresReadModel(
        settings.dsn,
        connections_max=settings.pool_connections_max,
        timeout_s=settings.read_timeout_s,
    )
    described = ServiceApi("fairlead-gateway", "Fairlead gateway")
    nats = NatsConnection(lambda: _connect_nats(settings, local, described))
    health = Health()
    health.depend("nats", nats.complaint)
    # Without Postgres the gateway still admits prompts and streams: only reads say that they are unavailable.
    health.want("postgres", read_model.complaint)

    @asynccontextmanager
    async def work() -> AsyncIterator[None]:
        async with read_model.open(), nats.open():
            yield

    runtime = Runtime(
        settings,
        nats.current,
        read_model,
        build_authenticator(settings.auth),
        PrincipalLimits(settings.limits),
        sealer=_sealer(settings),
    )
    documented = (*OPERATIONS, *ag_ui_operations(), *a2a_operations())
    all_operations = (*documented, *view_operations())
    routes = [
        *dispatch.build_routes(runtime, all_operations),
        openapi.route(documented),
        *provider_routes(runtime),
        *console_routes(),
    ]
    operations = OperationsPort(settings.ops_host, settings.ops_port)
    app = dispatch.guard_and_log(
        application("gateway", work, health, routes, operations=operations), settings.origin_rules
    )
    app.state.runtime = runtime
    return app


@asynccontextmanager
async def _connect_nats(
    settings: GatewaySettings, local: LocalRequests | None, described: ServiceApi
) -> AsyncIterator[EventLog]:
    timeout_s = settings.request_timeout_s
    async with connect.connect(
        settings.nats, name="gateway", timeout_s=timeout_s, local=local
    ) as eventlog:
        await eventlog.self_description.start_answering(described.answers())
        yield eventlog


def _sealer(settings: GatewaySettings) -> Sealer:
    """The sealer of cookies. Gateways share it through a file; without one, each has its own."""
    path = settings.auth.cookie_key_file
    return Sealer.random() if path is None else Sealer.load(Path(path))
