"""`fairlead schedule`: send prompts at a time, or again and again."""

import argparse
from datetime import datetime
from typing import Any

from rich.markup import escape

from fairlead_cli.commands.hooks.request import explain_answers, present, send, show_time
from fairlead_cli.errors import UsageError
from fairlead_cli.json_output import print_json, print_json_lines
from fairlead_cli.outcome import say
from fairlead_cli.terminal import shorten, stdout_console, table

PATH = "/api/schedule"


def run(args: argparse.Namespace) -> int:
    with explain_answers(args):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    match args.action:
        case "create":
            return _show(args, [send(args, "POST", PATH, _body(args))])
        case "list":
            return _show(args, send(args, "GET", PATH))
        case "show":
            return _show(args, [send(args, "GET", f"{PATH}/{args.id}")])
        case "pause" | "resume":
            body = {"paused": args.action == "pause"}
            return _show(args, [send(args, "PATCH", f"{PATH}/{args.id}", body)])
        case _:
            send(args, "DELETE", f"{PATH}/{args.id}")
            if args.json:
                print_json({"id": args.id})
            return 0


def _body(args: argparse.Namespace) -> dict[str, Any]:
    return present(
        prompt={"text": args.text},
        at=None if args.at is None else parse_time(args.at),
        cron=args.cron,
        timezone=args.timezone,
        missed=args.missed,
        session=args.session,
        agent=args.agent,
        name=args.name,
    )


def parse_time(text: str) -> int:
    """Epoch milliseconds of a time with its offset. Raises UsageError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--at {text}: write it as 2027-01-31T09:00:00+01:00") from error
    if moment.tzinfo is None:
        raise UsageError(f"--at {text}: say the offset too, such as {text}+01:00 or {text}Z")
    return int(moment.timestamp() * 1000)


def _show(args: argparse.Namespace, schedules: list[dict[str, Any]]) -> int:
    if args.json:
        print_json_lines(schedules)
        return 0
    if not schedules:
        return say('No schedules yet. Make one: fairlead schedule create "…" --cron "0 9 * * *"')
    grid = table("ID", "WHEN", "NEXT", "LAST", "PROMPT")
    for one in schedules:
        when = _describe_cron(one) if "cron" in one else show_time(one.get("at"))
        upcoming = "paused" if one["paused"] else show_time(one.get("next"))
        last = one.get("last", {})
        outcome = f"{last['outcome']} {show_time(last['due'])}" if last else ""
        if "error" in last:
            outcome += f": {last['error']['message']}"
        row = (one["id"], when, upcoming, outcome, shorten(one["prompt"]["text"], 40))
        grid.add_row(*map(escape, row))
    stdout_console().print(grid)
    return 0


def _describe_cron(schedule: dict[str, Any]) -> str:
    """The expression, and its zone if it is not UTC."""
    zone = schedule["timezone"]
    return str(schedule["cron"] if zone == "UTC" else f"{schedule['cron']} {zone}")
