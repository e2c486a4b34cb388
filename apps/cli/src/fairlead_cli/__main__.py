"""The `fairlead` command: loads the chosen subcommand, runs it, prints a failure in one line."""

import argparse
import io
import json
import logging
import os
import sys
from collections.abc import Sequence
from errno import ENOSPC
from importlib import import_module
from typing import Final, Protocol, cast

from fairlead_cli.command_line.argument_parser import parse
from fairlead_cli.command_line.command_table import COMMANDS
from fairlead_cli.command_line.exit_codes import DEFECT, FAILED, INTERRUPTED
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.errors import CommandError, UsageError

TRACEBACK_VARIABLE: Final = "FAIRLEAD_TRACEBACK"
_LIBRARY_ERRORS: Final = (
    ("fairlead_eventlog.errors", "LogError"),
    ("fairlead_service.config.configuration", "ConfigError"),
)
# httpx loads its own command line if it can, and that takes longer than all of httpx.
_UNUSED: Final = "httpx._main"


class CommandModule(Protocol):
    """The interface of a module under `commands`."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the command and return its exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. A failure becomes one line on standard error."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    _accept_every_character()
    as_json = "--json" in arguments
    try:
        _check_characters(arguments)
        args = parse(arguments)
        # Log lines of libraries are not for the terminal: commands print what users need.
        logging.getLogger().addHandler(logging.NullHandler())
        return _load(args.command).run(args)
    except CommandError as error:
        return _fail(str(error), error.exit_code, as_json=as_json, tag=error.tag)
    except _library_errors() as error:
        return _fail(str(error), FAILED, as_json=as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe has left (`fairlead tail … | head`): there is nobody to write to.
        sys.stderr.close()
        return 0
    except Exception as error:
        if isinstance(error, OSError) and error.errno == ENOSPC:
            text = f"nothing more can be written: {error.strerror}. Free some space, and try again"
            return _fail(text, FAILED, as_json=as_json)
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        text = (
            f"a defect, please report it: {type(error).__name__}: {error}"
            f" ({TRACEBACK_VARIABLE}=1 shows where)"
        )
        return _fail(text, DEFECT, as_json=as_json)


def _library_errors() -> tuple[type[Exception], ...]:
    """The expected errors of libraries. Where a library is not loaded, nobody can raise them."""
    return tuple(
        getattr(sys.modules[module], name)
        for module, name in _LIBRARY_ERRORS
        if module in sys.modules
    )


def _load(name: str) -> CommandModule:
    sys.modules.setdefault(_UNUSED, None)  # type: ignore[arg-type] # None: it cannot be imported
    with keep_modules():
        module = import_module(f"fairlead_cli.commands.{COMMANDS[name].module}")
    return cast("CommandModule", module)


def _accept_every_character() -> None:
    """Print a replacement for characters that the terminal does not know, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _check_characters(arguments: Sequence[str]) -> None:
    for number, argument in enumerate(arguments, 1):
        if not argument.isascii() and any("\ud800" <= letter <= "\udfff" for letter in argument):
            shown = argument.encode(errors="replace").decode()
            raise UsageError(f"argument {number} ({shown}) is not UTF-8: convert it first")


def _fail(message: str, exit_code: int, *, as_json: bool, tag: str | None = None) -> int:
    line = " ".join(message.split())
    if as_json:
        error = {"message": line, "exit": exit_code} | ({} if tag is None else {"tag": tag})
        sys.stderr.write(json.dumps({"error": error}) + "\n")
    else:
        sys.stderr.write(f"fairlead: {line}\n")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
