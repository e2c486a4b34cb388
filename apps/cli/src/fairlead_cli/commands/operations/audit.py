"""`fairlead audit`: verifies the live log for ever, and counts what breaks a rule."""

import argparse

from fairlead_cli.addresses import effective_config
from fairlead_cli.command_line.module_loader import keep_modules


def run(args: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT. `/metrics` and `/readyz` are on the port of `[health]`."""
    config = effective_config(args)
    with keep_modules():
        from fairlead_cli.audit.process import build_auditor  # noqa: PLC0415
        from fairlead_service.logs import configure  # noqa: PLC0415
        from fairlead_service.process import serve  # noqa: PLC0415
    configure("audit", config.log.level)
    app = build_auditor(
        config.nats.address("audit"), whole=args.whole, sessions_max=args.sessions_max
    )
    serve(app, host=config.health.host, port=config.health.port if args.port is None else args.port)
    return 0
