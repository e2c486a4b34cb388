"""What a command has done: a sentence for a person, or a line of JSON for a program."""

import argparse
from typing import Any

from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console, stdout_console


def say(sentence: str) -> int:
    """Print a result that is one sentence. The exit code is that of success."""
    stdout_console().print(sentence, markup=False, soft_wrap=True)
    return 0


def report(args: argparse.Namespace, note: str, **fields: Any) -> int:  # noqa: ANN401 - any JSON
    """Say what was done. The exit code is that of success."""
    if args.json:
        print_json(fields)
    else:
        stderr_console().print(note, style="dim", markup=False, soft_wrap=True)
    return 0
