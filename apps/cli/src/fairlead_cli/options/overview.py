"""The options of the commands that show what there is, a function for each module of commands."""

import argparse

from fairlead_cli.options.shared import add_http, add_json, add_session


def sessions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--limit", type=int, default=20, metavar="N", help="how many (default 20)")
    add("--search", metavar="TEXT", help="only titles with this text")
    add_json(parser, "one session per line")
    add_http(parser)


def explain(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    add_json(parser, "one line of JSON, as clients get it")
    add_http(parser)


def inbox(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    add_json(parser, "one input per line")
    add_http(parser)


def cost(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="default: all sessions of the tenant")
    add("--limit", type=int, default=20, metavar="N", help="how many sessions (default 20)")
    add_json(parser)
    add_http(parser)


def asks(parser: argparse.ArgumentParser) -> None:
    add_json(parser, "one request per line")
    add_http(parser)


def top(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--limit", type=int, default=50, metavar="N", help="how many sessions (default 50)")
    add("--every", type=float, default=2.0, metavar="S", help="seconds between looks (default 2)")
    add_json(parser, "one look as one line of JSON, without a screen")
    add_http(parser)
