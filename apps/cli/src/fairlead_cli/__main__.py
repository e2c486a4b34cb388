"""The `fairlead` command: loads the chosen subcommand, runs it, prints a failure in one line."""

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final, NamedTuple, Protocol, cast

from fairlead_cli.errors import CommandError
from fairlead_eventlog.errors import LogError
from fairlead_service.config.configuration import ConfigError


class CommandEntry(NamedTuple):
    """Where a command's module is, under `commands`, and its line in the help."""

    module: str
    summary: str


COMMANDS: Final = {
    "init": CommandEntry("stack.init", "find a model, try it, and write fairlead.toml"),
    "up": CommandEntry("stack.up", "run the whole stack on this machine"),
    "demo": CommandEntry("stack.demo", "see a stack, a session, an answer and its log in a minute"),
    "models": CommandEntry("stack.models", "list the models that can be used"),
    "prompt": CommandEntry("session.prompt", "send a prompt and watch the answer"),
    "shell": CommandEntry("session.shell", "run a command of your own in a session's location"),
    "tail": CommandEntry("session.tail", "follow the events of a session"),
    "sessions": CommandEntry("session.sessions", "list sessions"),
    "explain": CommandEntry("session.explain", "say why a session works or rests"),
    "asks": CommandEntry("session.asks", "list permissions and questions that wait for an answer"),
    "reply": CommandEntry("session.reply", "answer a permission or a question"),
    "interrupt": CommandEntry("session.interrupt", "stop a session's work and keep its inbox"),
    "resume": CommandEntry("session.resume", "run at least one turn of a session"),
    "undo": CommandEntry("session.undo", "take the last prompt and its file changes back"),
    "redo": CommandEntry("session.redo", "bring back what the last undo took"),
    "cancel": CommandEntry("session.cancel", "withdraw one pending input"),
    "rename": CommandEntry("session.rename", "give a session a title of your own"),
    "export": CommandEntry("session.export", "write sessions to a file that can be verified"),
    "import": CommandEntry("session.import_file", "bring the sessions of an exported file here"),
    "acp": CommandEntry("session.acp", "let an editor drive sessions (Agent Client Protocol)"),
    "token": CommandEntry("stack.token", "create, list and revoke keys for the HTTP API"),
    "doctor": CommandEntry("stack.doctor", "check this machine and say how to repair it"),
    "secrets": CommandEntry(
        "stack.secrets", "make the keys, certificates and passwords of a deployment"
    ),
    "provision": CommandEntry("stack.provision", "create or update the streams"),
    "nats-callout": CommandEntry(
        "stack.nats_callout", "let clients connect to NATS with the keys of HTTP"
    ),
    "migrate": CommandEntry("stack.migrate", "create or update the tables and roles in Postgres"),
    "rebuild": CommandEntry("stack.rebuild", "drop the read models and rebuild them from the log"),
    "verify": CommandEntry(
        "stack.verify", "check the log: all sessions, one session, or an exported file"
    ),
    "quota": CommandEntry("stack.quota", "show what a tenant uses of each of its quotas"),
    "bench": CommandEntry("stack.bench", "measure throughput and latency"),
    "sim": CommandEntry("stack.sim", "run the simulated model provider alone"),
}
EPILOG: Final = """\
start here:
  fairlead demo                     nothing to install or configure
  fairlead up                       uses the key that it finds; then, in another terminal:
  fairlead prompt "Say hello"

`fairlead COMMAND --help` lists the options of a command.
"""
INTERRUPTED: Final = 130


class CommandModule(Protocol):
    """The interface of a module under `commands`."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Prints each command and its summary on one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=18, width=100)
        # argparse leaves out the indentation when it measures the names of commands.
        self._action_max_length = 18


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. An expected failure becomes one line on standard error."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    command_name = next((word for word in arguments if not word.startswith("-")), None)
    args = build_parser(command_name).parse_args(arguments)
    # Log lines of libraries are not for the terminal: commands print what users need.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        return _load(args.command).run(args)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except (ConfigError, LogError) as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has left (`fairlead tail … | head`): there is nobody to write to.
        sys.stderr.close()
        return 0


def build_parser(command_name: str | None) -> argparse.ArgumentParser:
    """A parser with every command. Only the chosen command's module is loaded: help stays fast."""
    parser = argparse.ArgumentParser(
        prog="fairlead",
        description="A durable, distributed session runtime for AI agents.",
        epilog=EPILOG,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fairlead {version('fairlead')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, entry in COMMANDS.items():
        summary = entry.summary
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )
        if name == command_name and _is_installed(name):
            _load(name).configure(command)
    return parser


def _load(name: str) -> CommandModule:
    if not _is_installed(name):
        raise CommandError(f"{name} is not part of this installation")
    return cast("CommandModule", import_module(_module_path(name)))


def _is_installed(name: str) -> bool:
    return find_spec(_module_path(name)) is not None


def _module_path(name: str) -> str:
    return f"fairlead_cli.commands.{COMMANDS[name].module}"


def _fail(message: str, exit_code: int) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"fairlead: {line}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
