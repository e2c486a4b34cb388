"""The options of the commands about webhooks and schedules, a function for each module of commands."""

import argparse
from typing import Any

from fairlead_cli.options.shared import add_http, add_json
from fairlead_schema.webhooks.event_names import WEBHOOK_EVENTS


def webhook(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = add_action(actions, "create", "register a URL, and print its secret, once")
    create.add_argument("url", metavar="URL")
    create.add_argument(
        "--event", action="append", choices=list(WEBHOOK_EVENTS), help="default: all"
    )
    create.add_argument("--name", metavar="TEXT", help="what it is for")
    add_action(actions, "list", "list webhooks and how they fare")
    about = {
        "show": "show one webhook",
        "test": "post a trial now",
        "pause": "send nothing for now: events wait",
        "resume": "send again, also to a receiver that was gone",
        "rotate": "make one more secret, and print it, once",
        "remove": "remove a webhook",
        "undelivered": "list deliveries that were given up",
    }
    for name, help_ in about.items():
        action = add_action(actions, name, help_)
        action.add_argument("id", metavar="WEBHOOK")
        if name == "rotate":
            action.add_argument("--drop", metavar="SECRET", help="the id of a secret to drop")
    again = add_action(actions, "redeliver", "send again what was given up")
    again.add_argument("id", metavar="WEBHOOK")
    again.add_argument("delivery", metavar="DELIVERY", nargs="?", help="default: all of them")


def schedule(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = add_action(actions, "create", "make a schedule")
    create.add_argument("text", metavar="TEXT", help="the prompt")
    add = create.add_argument
    when = create.add_mutually_exclusive_group(required=True)
    when.add_argument("--at", metavar="TIME", help="once, such as 2027-01-31T09:00:00+01:00")
    when.add_argument("--cron", metavar="EXPRESSION", help="such as '0 9 * * 1-5'")
    add("--timezone", metavar="ZONE", help="of the cron expression (default: UTC)")
    add("--missed", choices=("once", "skip"), help="runs that could not start in time")
    add("--session", metavar="ID", help="new (default), same, or the id of a session")
    add("--agent", metavar="NAME", help="agent of new sessions")
    add("--name", metavar="TEXT", help="what it is for")
    add_action(actions, "list", "list schedules with their next and last runs")
    about = {
        "show": "show one schedule",
        "pause": "start nothing for now",
        "resume": "start again, from now on",
        "remove": "remove a schedule: its sessions stay",
    }
    for name, help_ in about.items():
        add_action(actions, name, help_).add_argument("id", metavar="SCHEDULE")


def add_action(actions: Any, name: str, help_: str) -> argparse.ArgumentParser:  # noqa: ANN401
    """An action of a command, with the options that every action has."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=help_)
    add_json(parser, "one line of JSON each")
    add_http(parser)
    return parser
