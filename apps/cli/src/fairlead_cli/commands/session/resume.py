"""`fairlead resume`: run at least one turn of a session, or join the turn that already runs."""

import argparse

from fairlead_cli.gateway import run_with_client
from fairlead_cli.outcome import report


def run(args: argparse.Namespace) -> int:
    run_with_client(args, lambda client: client.resume(args.session))
    note = f"Resume requested. See: fairlead explain {args.session}"
    return report(args, note, session=args.session, resumed=True)
