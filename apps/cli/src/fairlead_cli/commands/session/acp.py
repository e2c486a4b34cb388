"""`fairlead acp`: let an editor drive sessions, over standard input and output."""

import argparse
import asyncio
import os
import stat
import sys

from fairlead_cli.acp.log_lines import log_to_standard_error
from fairlead_cli.command_line.gateway_address import address_of
from fairlead_cli.command_line.module_loader import load_editor_protocol
from fairlead_cli.errors import CommandError


def run(args: argparse.Namespace) -> int:
    _check_input()
    log_to_standard_error()
    gateway = address_of(args)
    load_editor_protocol()
    from fairlead_cli.acp.editor_service import serve_editor  # noqa: PLC0415

    try:
        asyncio.run(serve_editor(gateway))
    except ValueError as error:
        raise CommandError(f"standard input and output must be pipes: {error}") from error
    return 0


def _check_input() -> None:
    """Refuse a device such as /dev/null: asyncio takes it for a pipe, and would wait for ever."""
    if stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode) and not sys.stdin.isatty():
        raise CommandError("standard input and output must be pipes: editors start this command")
