"""`fairlead webhook`: send chosen events of all sessions to a URL."""

import argparse
from typing import Any, Final

from rich.markup import escape

from fairlead_cli.commands.hooks.request import explain_answers, present, send, show_time
from fairlead_cli.errors import CommandError
from fairlead_cli.json_output import print_json, print_json_lines
from fairlead_cli.outcome import say
from fairlead_cli.terminal import stderr_console, stdout_console, table
from fairlead_schema.webhooks.event_names import WEBHOOK_EVENTS

PATH = "/api/webhook"
POST_S: Final = 90.0
"""Longer than the server waits for a receiver: `hooks.timeout_s` is at most 60."""


def run(args: argparse.Namespace) -> int:
    """Run one action. A trial or delivery that fails ends with code 1."""
    with explain_answers(args):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    match args.action:
        case "create":
            return _show_changed(args, send(args, "POST", PATH, _body(args)))
        case "list":
            return _list(args, send(args, "GET", PATH))
        case "show":
            return _list(args, [send(args, "GET", f"{PATH}/{args.id}")])
        case "test":
            return _show_outcomes(args, [_post(args, f"{PATH}/{args.id}/test")])
        case "pause" | "resume":
            body = {"paused": args.action == "pause"}
            return _show_changed(args, send(args, "PATCH", f"{PATH}/{args.id}", body))
        case "rotate":
            body = {"addSecret": True} | ({"removeSecrets": [args.drop]} if args.drop else {})
            return _show_changed(args, send(args, "PATCH", f"{PATH}/{args.id}", body))
        case "remove":
            send(args, "DELETE", f"{PATH}/{args.id}")
            if args.json:
                print_json({"id": args.id})
            return 0
        case "undelivered":
            return _list_undelivered(args, send(args, "GET", f"{PATH}/{args.id}/undelivered"))
        case _:
            return _redeliver(args)


def _body(args: argparse.Namespace) -> dict[str, Any]:
    return present(url=args.url, events=args.event or list(WEBHOOK_EVENTS), name=args.name)


def _show_changed(args: argparse.Namespace, changed: dict[str, Any]) -> int:
    if args.json:
        print_json(changed)
        return 0
    _list(args, [changed["webhook"]])
    if "secret" in changed:
        stdout_console().print(changed["secret"], markup=False, soft_wrap=True)
        note = "the secret is shown only now: give it to the receiver"
        stderr_console().print(note, style="dim")
    return 0


def _list(args: argparse.Namespace, webhooks: list[dict[str, Any]]) -> int:
    if args.json:
        print_json_lines(webhooks)
        return 0
    if not webhooks:
        return say("No webhooks yet. Make one: fairlead webhook create URL")
    grid = table("ID", "STATUS", "EVENTS", "URL")
    for webhook in webhooks:
        status = webhook["status"]
        if "reason" in webhook:
            status += f": {webhook['reason']}"
        row = (webhook["id"], status, " ".join(webhook["events"]), webhook["url"])
        grid.add_row(*map(escape, row))
    stdout_console().print(grid)
    return 0


def _list_undelivered(args: argparse.Namespace, deliveries: list[dict[str, Any]]) -> int:
    if args.json:
        print_json_lines(deliveries)
        return 0
    if not deliveries:
        return say("Everything was delivered, or is still tried.")
    grid = table("DELIVERY", "TIME", "TYPE", "SESSION", "REASON")
    for one in deliveries:
        row = (one["id"], show_time(one["time"]), one["type"], one["sessionID"], one["reason"])
        grid.add_row(*map(escape, row))
    stdout_console().print(grid)
    return 0


def _redeliver(args: argparse.Namespace) -> int:
    path = f"{PATH}/{args.id}/undelivered"
    ids = [args.delivery]
    if args.delivery is None:
        ids = [delivery["id"] for delivery in send(args, "GET", path)]
    return _show_outcomes(args, [_post(args, f"{path}/{id_}") for id_ in ids])


def _post(args: argparse.Namespace, path: str) -> Any:  # noqa: ANN401 - any JSON
    """Let the server post something. It answers when the receiver has."""
    return send(args, "POST", path, timeout_s=POST_S)


def _show_outcomes(args: argparse.Namespace, outcomes: list[dict[str, Any]]) -> int:
    failed = [outcome for outcome in outcomes if not outcome["delivered"]]
    for outcome in outcomes:
        if args.json:
            print_json(outcome)
        elif outcome["delivered"]:
            text = f"{outcome['id']}: delivered, status {outcome['status']}"
            stdout_console().print(text, markup=False)
    if failed and not args.json:
        raise CommandError(f"{failed[0]['id']}: {failed[0].get('reason', 'not delivered')}")
    return 1 if failed else 0
