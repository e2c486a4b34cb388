"""The options of the commands for operators of a deployment, a function for each module of commands."""

import argparse
import re
from pathlib import Path
from typing import Final

from fairlead_cli.options.shared import add_config, add_http, add_json, add_session, port

RESTORE_WAIT_S: Final = 60.0
DEFAULT_DATABASE: Final = "postgres:5432/fairlead"


def secrets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="one directory for each process is made here")
    parser.add_argument(
        "--nats-host",
        action="append",
        metavar="NAME",
        help="a name of the nats-servers in their certificate; repeatable;"
        " default: the names of the shipped compose and Kubernetes files",
    )
    parser.add_argument(
        "--database",
        type=_database,
        default=DEFAULT_DATABASE,
        metavar="HOST:PORT/NAME",
        help=f"where the services find Postgres; default: {DEFAULT_DATABASE}",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="fairlead.toml; the workers of each [[pool]] get a key of their own",
    )
    add_json(parser, "one line of JSON per change")


def pool(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list", help="pools with their workers, waiting calls and sessions"
    )
    drain = actions.add_parser("drain", help="move the sessions of a pool, each when it rests")
    drain.add_argument("name", metavar="NAME")
    drain.add_argument("--to", metavar="POOL", help="default: as the rules say now")
    drain.add_argument(
        "--wait",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="how long to wait for sessions that work (600)",
    )
    drain.add_argument(
        "--now",
        action="store_true",
        help="interrupt sessions that work; they go on in their new pool",
    )
    for action in (listing, drain):
        add_json(action, "one line of JSON per pool or session")
        add_config(action)


def audit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--whole", action="store_true", help="begin with the first commit, not with what comes now")
    add(
        "--sessions-max",
        type=int,
        default=20_000,
        metavar="N",
        help="sessions to hold in memory; others are read again when they move (20000)",
    )
    add("--port", type=port, metavar="PORT", help="of health and metrics; default: [health] port")
    add_config(parser)


def backup(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("directory", type=Path, metavar="DIR", help="empty, or not there yet")
    add("--dated", action="store_true", help="make a directory below DIR, named by the time")
    add("--keep", type=int, metavar="N", help="with --dated: keep the N newest, remove others")
    add(
        "--every",
        type=_positive,
        metavar="HOURS",
        help="with --dated: stay, and back up when the newest complete one is so old",
    )
    add_json(parser)
    add_config(parser)


def restore(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("directory", type=Path, metavar="DIR", help="what `fairlead backup` wrote")
    add("--check", action="store_true", help="only verify the backup; no server is needed")
    add(
        "--replicas",
        type=int,
        metavar="N",
        help="copies of each stream; default: as the configuration says. Without a configuration"
        " also the number of nats-servers of the new --state, 1 or 3 (1)",
    )
    add(
        "--wait",
        type=float,
        default=RESTORE_WAIT_S,
        metavar="SECONDS",
        help=f"how long to wait for servers that do not answer yet ({RESTORE_WAIT_S:.0f})",
    )
    add_json(parser)
    add_config(parser)


def purge(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="its id")
    add("--tree", action="store_true", help="also the sessions of its sub-agents")
    add("--all", action="store_true", help="every session of --tenant, and all else of it")
    add("--tenant", metavar="NAME", help="whose data it is; default for a session: default")
    add("--dry-run", action="store_true", help="only count what is stored")
    add("--confirm", metavar="NAME", help="the session or tenant once more, instead of typing it")
    add(
        "--wait",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long to wait until the projector has erased log and feed (60)",
    )
    add_json(parser)
    add_config(parser)


def cold(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    store = actions.add_parser("store", help="move sessions at rest into files")
    store.add_argument("session", metavar="SESSION", nargs="?", help="its sub-agents go with it")
    store.add_argument(
        "--older-than", type=_days, metavar="90d", help="all sessions unchanged for so many days"
    )
    store.add_argument("--to", type=Path, required=True, metavar="DIR", help="where the files go")
    store.add_argument("--dry-run", action="store_true", help="only say which sessions would go")
    restore = actions.add_parser("restore", help="bring a session back under its own id")
    add_session(restore)
    restore.add_argument(
        "--from", dest="source", type=Path, required=True, metavar="DIR", help="with its files"
    )
    for action in (store, restore):
        action.add_argument(
            "--wait",
            type=float,
            default=90.0,
            metavar="SECONDS",
            help="how long to wait until the projector has done its part (90)",
        )
        add_http(action)
    listing = actions.add_parser("list", help="say what the files of a directory hold")
    verify = actions.add_parser("verify", help="check every file of a directory; needs no server")
    for action in (listing, verify):
        action.add_argument("directory", type=Path, metavar="DIR")
    show = actions.add_parser("show", help="print the transcript of a file; needs no server")
    show.add_argument("file", type=Path, metavar="FILE")
    for action in (store, restore, listing, verify, show):
        add_json(action, "one line of JSON per session or file")


def capacity(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--agents", type=_positive, required=True, metavar="N", help="that work at the same time")
    add(
        "--step-s",
        type=_positive,
        default=10.0,
        metavar="SECONDS",
        help="an agent takes a step of its model so often (10)",
    )
    add(
        "--steps-per-prompt",
        type=_at_least_one,
        default=10.0,
        metavar="N",
        help="the first step answers a prompt, the others follow calls (10)",
    )
    add(
        "--fragments", type=_positive, default=100.0, metavar="N", help="of each answer, live (100)"
    )
    add(
        "--text-bytes",
        type=_positive,
        default=4_000.0,
        metavar="N",
        help="prompts, answers, arguments and outputs of a step (4000)",
    )
    add("--watchers", type=float, default=1.0, metavar="N", help="event streams an agent (1)")
    add("--hours", type=_positive, default=24.0, metavar="N", help="of work a day (24)")
    add("--days", type=_positive, default=90.0, metavar="N", help="that sessions are kept (90)")
    add("--feed-days", type=_positive, default=7.0, metavar="N", help="that the feed is kept (7)")
    add("--replicas", type=int, choices=(1, 3, 5), default=3, help="copies of each stream (3)")
    add_json(parser)


def _database(text: str) -> str:
    """An address without a user: each process gets the role and the password of its own."""
    if not re.fullmatch(r"[^/@\s]+:\d+/[^/@?\s]+(\?[^@\s]+)?", text):
        raise argparse.ArgumentTypeError(f"{text} is not HOST:PORT/NAME, like {DEFAULT_DATABASE}")
    return text


def _positive(text: str) -> float:
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number greater than zero")
    return value


def _days(text: str) -> int:
    number = text.removesuffix("d")
    if not number.isdecimal() or text == number:
        raise argparse.ArgumentTypeError("must be a number of days, such as 90d")
    return int(number)


def _at_least_one(text: str) -> float:
    value = _number(text)
    if not 1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of one or more")
    return value


def _number(text: str) -> float:
    """The number, or one that fits no limit."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
