"""`fairlead completion`: print the completion script of a shell."""

import argparse
import sys

from fairlead_cli.command_line.completion import SCRIPTS, command_words


def run(args: argparse.Namespace) -> int:
    sys.stdout.write(SCRIPTS[args.shell](command_words()))
    return 0
