"""Options that many commands have."""

import argparse
from pathlib import Path
from typing import Final

PORT_MAX: Final = 65_535


def port(text: str) -> int:
    """A port as an option names it. Raises ArgumentTypeError."""
    number = int(text) if text.isdecimal() and text.isascii() else -1
    if not 0 <= number <= PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is no port: choose 0 to {PORT_MAX}")
    return number


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the session that a command is about."""
    parser.add_argument(
        "session", metavar="SESSION", help="its id, as `fairlead sessions` shows it"
    )


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a local stack."""
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".fairlead"),
        metavar="DIR",
        help="state directory of a local stack (default .fairlead)",
    )


def add_gateway(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a gateway, and the key for it."""
    parser.add_argument(
        "--http", metavar="URL", help="default: $FAIRLEAD_HTTP, else the local stack"
    )
    parser.add_argument(
        "--token", metavar="KEY", help="default: $FAIRLEAD_TOKEN, else the key of the local stack"
    )


def add_http(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a gateway or a local stack."""
    add_gateway(parser)
    add_state(parser)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a configuration or a local stack."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="fairlead.toml")
    add_state(parser)


def add_json(parser: argparse.ArgumentParser, what: str = "one line of JSON") -> None:
    """Add the option for programs. It also makes a failure a line of JSON, on standard error."""
    parser.add_argument("--json", action="store_true", help=what)
