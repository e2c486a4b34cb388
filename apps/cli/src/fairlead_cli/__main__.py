"""The `fairlead` command: finds the command that was asked for, runs it, says plainly what failed."""

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final, Protocol, cast

from fairlead_cli.errors import CommandError
from fairlead_eventlog.errors import LogError
from fairlead_service.config.configuration import ConfigError

COMMANDS: Final = {
    "up": "run the whole stack on this machine",
    "demo": "see it work in under a minute: stack, session, answer, log",
    "prompt": "send a prompt and watch the answer",
    "tail": "follow the events of a session",
    "sessions": "list sessions",
    "explain": "say why a session moves or does not",
    "asks": "list what waits for a person",
    "reply": "answer a permission or a question",
    "interrupt": "stop a session's work and keep its inbox",
    "resume": "run at least one turn of a session",
    "cancel": "withdraw one pending input",
    "doctor": "check this machine and say how to mend it",
    "provision": "create or update the streams",
    "rebuild": "drop the read models and rebuild them from the log",
    "verify": "check the log: every session, one, or an exported file",
    "bench": "measure throughput and latency",
    "sim": "run the simulated model provider alone",
}
EPILOG: Final = """\
start here:
  fairlead demo                     nothing to install or configure
  fairlead up                       then, in another terminal:
  fairlead prompt "Say hello"

`fairlead COMMAND --help` says more about a command.
"""
INTERRUPTED: Final = 130


class CommandModule(Protocol):
    """What a module under `commands` offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Say the command's options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the answer is the exit code."""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Command names and what they do on one line each."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=16, width=100)
        # argparse forgets how far commands are indented when it measures them.
        self._action_max_length = 16


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Expected failures become one line on standard error."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    args = build_parser(chosen).parse_args(arguments)
    # What libraries log is not for people; commands say themselves what matters.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        return _module(args.command).run(args)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except (ConfigError, LogError) as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left (`fairlead tail … | head`): nothing more to say, to anybody.
        sys.stderr.close()
        return 0


def build_parser(chosen: str | None) -> argparse.ArgumentParser:
    """Every command by name; only the chosen one is loaded, so that help stays fast."""
    parser = argparse.ArgumentParser(
        prog="fairlead",
        description="A durable, distributed session runtime for AI agents.",
        epilog=EPILOG,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fairlead {version('fairlead')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )
        if name == chosen and _available(name):
            _module(name).configure(command)
    return parser


def _module(name: str) -> CommandModule:
    if not _available(name):
        raise CommandError(f"{name} is not part of this installation")
    return cast("CommandModule", import_module(f"fairlead_cli.commands.{name}"))


def _available(name: str) -> bool:
    return find_spec(f"fairlead_cli.commands.{name}") is not None


def _fail(message: str, exit_code: int) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"fairlead: {line}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
