"""`fairlead cancel`: withdraw one pending input."""

import argparse

from fairlead_cli.gateway import run_with_client
from fairlead_cli.outcome import report


def run(args: argparse.Namespace) -> int:
    run_with_client(args, lambda client: client.cancel(args.session, args.message))
    note = f"Withdrawn: {args.message}"
    return report(args, note, session=args.session, message=args.message, withdrawn=True)
