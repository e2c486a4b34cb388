"""Shows a staged revert: the files that changed back, and what may follow."""

import argparse

from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console
from fairlead_schema.session_values.revert_state import RevertState


def report_revert(args: argparse.Namespace, state: RevertState | None) -> int:
    """One line for each file, then the next steps. None means that everything is back."""
    if args.json:
        print_json({"session": args.session, "revert": None if state is None else state.wire()})
        return 0
    console = stderr_console()
    if state is None:
        console.print("Everything is back.", style="dim", markup=False)
        return 0
    for file in state.files or ():
        line = f"{file.status:8} {file.path!r} +{file.additions} -{file.deletions}"
        console.print(line, markup=False, highlight=False)
    console.print(
        f"Undone {'from' if state.before else 'up to'} {state.message_id}. A new prompt makes it final; to return: "
        f"fairlead redo {args.session}",
        style="dim",
        markup=False,
    )
    return 0
