"""Prints a staged revert: the files that changed back, and what may follow."""

from fairlead_cli.terminal import stderr_console
from fairlead_schema.events.revert import RevertState
from fairlead_schema.ids import SessionId


def print_state(state: RevertState, session_id: SessionId) -> None:
    """One line for each file, then the next steps."""
    console = stderr_console()
    for file in state.files or ():
        line = f"{file.status:8} {file.path!r} +{file.additions} -{file.deletions}"
        console.print(line, markup=False, highlight=False)
    console.print(
        f"Undone up to {state.message_id}. A new prompt makes it final; to return: "
        f"fairlead redo {session_id}",
        style="dim",
        markup=False,
    )
