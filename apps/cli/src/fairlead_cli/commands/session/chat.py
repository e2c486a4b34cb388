"""`fairlead chat`: a session in the terminal."""

import argparse
import asyncio
import sys

from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.command_line.opening_line import OpeningLine, check_terminal


def run(args: argparse.Namespace) -> int:
    """Run the application until a person leaves."""
    check_terminal("chat", "use `fairlead prompt` in programs")
    with OpeningLine("chat") as line:
        # The library of the terminal is loaded only where there is a terminal.
        with keep_modules():
            from fairlead_cli.chat.chat_launch import launch_chat  # noqa: PLC0415

        end = asyncio.run(launch_chat(args, on_screen=line.hide))
    if end.session_id and not end.exit_code:
        sys.stdout.write(f"The session goes on: fairlead chat --resume {end.session_id}\n")
    return end.exit_code
