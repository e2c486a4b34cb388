"""`fairlead prompt`: send a prompt, watch the answer, leave when it is complete."""

import argparse
import asyncio
import json

from rich.console import Console

from fairlead_cli.addresses import add_http, http_url
from fairlead_cli.answer import Failed, Finished, Outcome, Piece, follow
from fairlead_cli.client import Client, connected
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.terminal import answers, remarks
from fairlead_schema.catalog import ModelRef


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", help="what to say")
    add("--session", metavar="ID", help="continue this session (default: a new one)")
    add("--model", metavar="PROVIDER/MODEL", help="model of a new session")
    add("--agent", metavar="NAME", help="agent of a new session")
    add("--json", action="store_true", help="one line of JSON when the answer is complete")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    """Exit 0 when the step ended, 1 when it failed."""
    if args.session and (args.model or args.agent):
        raise UsageError("--model and --agent are for a new session: leave out --session")
    return asyncio.run(_prompt(args))


def parse_model(text: str | None) -> ModelRef | None:
    """`provider/model` as a reference. Raises UsageError."""
    if text is None:
        return None
    provider_id, slash, model_id = text.partition("/")
    if not (provider_id and slash and model_id):
        raise UsageError(f"--model {text}: write it as PROVIDER/MODEL, for example sim/fast")
    return ModelRef(provider_id=provider_id, id=model_id)


class Page:
    """Shows pieces as running text, remarks between them."""

    def __init__(self, out: Console, notes: Console) -> None:
        self._out = out
        self._notes = notes
        self._mid_line = False
        self._kind = ""

    def show(self, piece: Piece) -> None:
        """Print one piece at once."""
        # A text may begin before the end of the reasoning is recorded.
        if self._mid_line and piece.kind != self._kind:
            self._out.print()
            self._mid_line = False
        self._kind = piece.kind
        if piece.kind != "note":
            style = "dim italic" if piece.kind == "reasoning" else ""
            self._out.print(piece.text, end="", style=style, markup=False, soft_wrap=True)
            self._mid_line = not piece.text.endswith("\n")
        elif piece.text:
            self._notes.print(f"· {piece.text}", style="cyan", markup=False)


async def _prompt(args: argparse.Namespace) -> int:
    model = parse_model(args.model)
    async with connected(http_url(args)) as client:
        session_id = args.session or (await client.create(agent=args.agent, model=model)).id
        outcome, message_id = await _ask(client, session_id, args)
    if args.json:
        answers().print(
            json.dumps({"session": session_id, "message": message_id, **_told(outcome)}),
            markup=False,
            soft_wrap=True,
        )
    if isinstance(outcome, Failed):
        raise CommandError(f"the step failed: {outcome.message} (fairlead tail {session_id})")
    if not args.json:
        again = f'fairlead prompt --session {session_id} "…"'
        remarks().print(f"\n{again}", style="dim", markup=False, soft_wrap=True)
    return 0


async def _ask(client: Client, session_id: str, args: argparse.Namespace) -> tuple[Outcome, str]:
    receipt = await client.prompt(session_id, args.text)
    page = Page(answers(), remarks())
    outcome = await follow(client, receipt, _silent if args.json else page.show)
    return outcome, receipt.id


def _silent(_piece: Piece) -> None:
    pass


def _told(outcome: Outcome) -> dict[str, object]:
    match outcome:
        case Finished(text, finish, cost, tokens):
            return {"text": text, "finish": finish, "cost": cost, "tokens": tokens}
        case Failed(message):
            return {"error": message}
