"""`fairlead chat`: a session in the terminal."""

import argparse
import asyncio
import sys

from fairlead_cli.errors import UsageError


def run(args: argparse.Namespace) -> int:
    """Run the application until a person leaves."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("chat needs a terminal: use `fairlead prompt` in programs")
    # The library of the terminal is loaded only where there is a terminal.
    from fairlead_cli.chat.chat_launch import launch_chat  # noqa: PLC0415

    session_id = asyncio.run(launch_chat(args))
    if session_id:
        sys.stdout.write(f"The session goes on: fairlead chat --resume {session_id}\n")
    return 0
