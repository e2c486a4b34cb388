"""`fairlead chat`: a session in the terminal."""

import argparse
import asyncio
import sys

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.command_line.opening_line import OpeningLine
from fairlead_cli.errors import UsageError


def run(args: argparse.Namespace) -> int:
    """Run the application until a person leaves."""
    # The screen is drawn on standard error.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("chat needs a terminal: use `fairlead prompt` in programs")
    with OpeningLine("chat") as line:
        # The library of the terminal is loaded only where there is a terminal.
        with keep_modules():
            from fairlead_cli.chat.chat_launch import launch_chat  # noqa: PLC0415

        session_id = asyncio.run(launch_chat(args, on_screen=line.hide))
    if session_id:
        sys.stdout.write(f"The session goes on: fairlead chat --resume {session_id}\n")
    return 0
