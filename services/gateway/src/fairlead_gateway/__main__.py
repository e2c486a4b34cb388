"""Runs the gateway: `python -m fairlead_gateway`."""

import os
import sys

from fairlead_gateway.app import build
from fairlead_gateway.runtime import Runtime
from fairlead_gateway.settings import GatewaySettings
from fairlead_service import logs
from fairlead_service.config import configuration
from fairlead_service.http_protocol import ConnectionLimits
from fairlead_service.process import serve
from fairlead_service.traces.setup import start_tracing


def main() -> None:
    """Read the environment once, build the application, and serve it until a signal."""
    try:
        config = configuration.load(None, os.environ)
        settings = GatewaySettings.of(config)
        logs.configure("gateway", settings.log_level)
        start_tracing("gateway", config.traces, os.environ)
        app = build(settings)
    except configuration.ConfigError as error:
        sys.exit(f"fairlead-gateway: {error}")
    runtime: Runtime = app.state.runtime
    serve(
        app,
        host=settings.host,
        port=settings.port,
        grace_s=settings.grace_s,
        on_exit=runtime.shutdown.set,
        limits=ConnectionLimits(
            settings.head_timeout_s, settings.head_bytes_max, settings.connections_max
        ),
    )


if __name__ == "__main__":
    main()
