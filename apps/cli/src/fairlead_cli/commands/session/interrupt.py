"""`fairlead interrupt`: stop a session's work and keep its inbox."""

import argparse

from fairlead_cli.gateway import run_with_client
from fairlead_cli.outcome import report


def run(args: argparse.Namespace) -> int:
    run_with_client(args, lambda client: client.interrupt(args.session))
    note = f"Interrupt requested. See: fairlead explain {args.session}"
    return report(args, note, session=args.session, interrupted=True)
