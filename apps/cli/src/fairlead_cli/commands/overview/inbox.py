"""`fairlead inbox`: the input that a session has admitted and that no model has seen."""

import argparse
from datetime import UTC, datetime

from rich.markup import escape

from fairlead_cli.gateway import run_with_client
from fairlead_cli.json_output import print_json_lines
from fairlead_cli.terminal import shorten, stderr_console, stdout_console, table


def run(args: argparse.Namespace) -> int:
    inputs = run_with_client(args, lambda client: client.pending(args.session))
    if args.json:
        print_json_lines(pending.wire() for pending in inputs)
        return 0
    if not inputs:
        stdout_console().print("The inbox is empty.")
        return 0
    grid = table("MESSAGE", "SINCE", "DELIVERY", "TEXT")
    for pending in inputs:
        since = datetime.fromtimestamp(pending.time_created / 1000, UTC).astimezone()
        text = escape(shorten(pending.prompt.text))
        grid.add_row(pending.id, f"{since:%H:%M:%S}", pending.delivery, text)
    stdout_console().print(grid)
    note = f"Withdraw one: fairlead cancel {args.session} MESSAGE"
    stderr_console().print(note, style="dim", markup=False, soft_wrap=True)
    return 0
