"""`fairlead rename`: give a session a title of your own."""

import argparse

from fairlead_cli.gateway import run_with_client
from fairlead_cli.outcome import report


def run(args: argparse.Namespace) -> int:
    run_with_client(args, lambda client: client.rename(args.session, args.title))
    note = f"Renamed: {args.session}"
    return report(args, note, session=args.session, title=args.title)
