"""The options of the commands that speak to a gateway, a function for each module of commands."""

import argparse
from pathlib import Path
from typing import Final

from fairlead_cli.options.shared import add_http, add_json, add_session

PICK: Final = "pick"
"""`--resume` without a session."""


def prompt(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", nargs="*", help="the prompt; - or nothing reads standard input")
    add("--session", metavar="ID", help="continue this session (default: a new one)")
    add("--file", metavar="FILE", action="append", default=[], help="attach a file; repeatable")
    add("--model", metavar="PROVIDER/MODEL", help="model of a new session; else of this prompt")
    add("--agent", metavar="NAME", help="agent of a new session; else of this prompt")
    add("--system", metavar="TEXT", help="more instructions, for this prompt alone")
    add("--tools", metavar="NAMES", help="tools for this prompt, with commas; '' for none")
    add("--schema", metavar="FILE", help="JSON Schema of the answer, for this prompt alone")
    add("--id", metavar="MESSAGE", help="message id: a repeated prompt is admitted once")
    add("--queue", action="store_true", help="wait until the current activity is over")
    add_json(parser, "one line of JSON when the answer is complete")
    add_http(parser)


def chat(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("prompt", metavar="TEXT", nargs="?", help="a first prompt")
    add(
        "--resume",
        metavar="SESSION",
        nargs="?",
        const=PICK,
        help="go on with a session: an id, `latest`, or without a value pick one",
    )
    add("--model", metavar="PROVIDER/MODEL", help="model of a new session")
    add("--agent", metavar="NAME", help="agent of a new session")
    add("--directory", metavar="DIR", help="directory of a new session (default: this one)")
    add("--token-file", type=Path, metavar="FILE", help="a file with the token, read again at need")
    add_http(parser)


def shell(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument("text", metavar="COMMAND", help="the command, quoted as one word")
    parser.add_argument("--id", metavar="MESSAGE", help="message id: a repeated command runs once")
    add_json(parser)
    add_http(parser)


def tail(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_session(parser)
    add("--after", type=int, default=0, metavar="N", help="only events after this sequence")
    add(
        "--follow",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="wait for new events (default), or stop at the last one",
    )
    add_json(parser, "one event per line, as clients get it")
    add_http(parser)


def reply(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("request", metavar="REQUEST", help="the id that `fairlead asks` shows")
    add(
        "answer",
        metavar="ANSWER",
        nargs="+",
        help="once, always or reject; for questions one answer each, or reject",
    )
    add("-m", "--message", metavar="TEXT", help="the reason of a rejection, for the model")
    add_json(parser)
    add_http(parser)


def _of_one_session(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    add_json(parser)
    add_http(parser)


interrupt = resume = redo = _of_one_session


def undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep-files", action="store_true", help="change no file back")
    _of_one_session(parser)


def cancel(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument("message", metavar="MESSAGE", help="its id, as `fairlead inbox` shows it")
    add_json(parser)
    add_http(parser)


def rename(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument("title", metavar="TITLE")
    add_json(parser)
    add_http(parser)


def move(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    add = parser.add_argument
    add("--directory", metavar="DIR", help="work here from now on (default: where it is)")
    add(
        "--pool",
        metavar="NAME",
        help="let the workers of this pool serve it (default: by the rules)",
    )
    add("--changes", action="store_true", help="take uncommitted changes along, inside one pool")
    add_json(parser)
    add_http(parser)


def export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION", nargs="?", help="the session to export")
    add("--tree", action="store_true", help="also the sessions of its sub-agents")
    add("--all", action="store_true", help="every session of the tenant instead of one")
    add("-o", "--output", metavar="FILE", help="default: SESSION.fairlead.jsonl; - for stdout")
    add_json(parser)
    add_http(parser)


def import_file(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="what `fairlead export` wrote")
    add("--id", metavar="SESSION", help="import a copy under this new id")
    add("--origin", metavar="NAME", help="who replays into the sessions; claims those without one")
    add("--strict", action="store_true", help="refuse sessions of another origin, do not skip them")
    add("--publish", action="store_true", help="send the new events to the public feed")
    add("--check", action="store_true", help="verify and check everything, and write nothing")
    add_json(parser, "one line of JSON, as clients get it")
    add_http(parser)


def acp(parser: argparse.ArgumentParser) -> None:
    add_http(parser)
