"""Runs all services in one process: `python -m fairlead_cli.solo`."""

import gc
import os
import sys

from fairlead_cli.solo.parts import build_parts, parse_settings
from fairlead_cli.solo.process import SoloProcess
from fairlead_gateway.settings import GatewaySettings
from fairlead_service import logs
from fairlead_service.config.configuration import ConfigError
from fairlead_service.http_protocol import ConnectionLimits
from fairlead_service.process import serve
from fairlead_service.process_memory import keep_memory_private
from fairlead_service.traces.setup import start_tracing


def main() -> None:
    """Read the settings of every part, build the parts, and serve them until a signal."""
    keep_memory_private()
    try:
        configs = parse_settings(os.environ)
        gateway = GatewaySettings.of(configs["gateway"])
        # Every part names itself in its lines. What belongs to no part is about HTTP.
        logs.configure("gateway", gateway.log_level)
        start_tracing("solo", configs["gateway"].traces, os.environ)
        process = SoloProcess(build_parts(configs))
    except ConfigError as error:
        sys.exit(f"fairlead-solo: {error}")
    # What was imported and built stays for ever. Later cycles are collected as usual: requests leave some.
    gc.freeze()
    serve(
        process,
        host=gateway.host,
        port=gateway.port,
        grace_s=gateway.grace_s,
        on_exit=process.stop,
        limits=ConnectionLimits(
            gateway.head_timeout_s, gateway.head_bytes_max, gateway.connections_max
        ),
    )


if __name__ == "__main__":
    main()
