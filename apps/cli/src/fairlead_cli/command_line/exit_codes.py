"""What the exit codes of `fairlead` mean. docs/guide/cli.md has the same table."""

from typing import Final

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NO_SERVER: Final = 3
REFUSED: Final = 4
NO_ACCESS: Final = 5
DEFECT: Final = 70
INTERRUPTED: Final = 130

MEANINGS: Final = {
    DONE: "The command did what it says.",
    FAILED: "The work failed: a turn, a check or a file. The message says what to do.",
    USAGE: "The arguments do not fit. Nothing was sent.",
    NO_SERVER: "No server answers at the address, or none that this release understands.",
    REFUSED: "The server refused: an unknown session, a conflict, a quota.",
    NO_ACCESS: "The key or token is missing, expired, or may not do this.",
    DEFECT: "A defect of Fairlead. `FAIRLEAD_TRACEBACK=1` shows where.",
    INTERRUPTED: "Ctrl-C. What was sent to a session goes on.",
}
