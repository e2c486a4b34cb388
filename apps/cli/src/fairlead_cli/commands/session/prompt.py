"""`fairlead prompt`: send a prompt, print the answer as it comes, exit when it is complete."""

import argparse
import asyncio
import json
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.answer import (
    AnswerFailed,
    AnswerFinished,
    AnswerOutcome,
    AnswerPiece,
    follow_answer,
)
from fairlead_cli.client import Client, open_client
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_schema.catalog import ModelRef
from fairlead_schema.prompt import PromptOptions


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", help="the prompt")
    add("--session", metavar="ID", help="continue this session (default: a new one)")
    add("--model", metavar="PROVIDER/MODEL", help="model of a new session; else of this prompt")
    add("--agent", metavar="NAME", help="agent of a new session; else of this prompt")
    add("--system", metavar="TEXT", help="more instructions, for this prompt alone")
    add("--tools", metavar="NAMES", help="tools for this prompt, with commas; '' for none")
    add("--schema", metavar="FILE", help="JSON Schema of the answer, for this prompt alone")
    add("--json", action="store_true", help="one line of JSON when the answer is complete")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    """Send the prompt. The exit code is 0 when the step ended, 1 when it failed."""
    return asyncio.run(_prompt(args, parse_options(args)))


def parse_options(args: argparse.Namespace) -> PromptOptions:
    """The options of this prompt alone. A new session gets the model and the agent itself."""
    selected = None if args.tools is None else [name.strip() for name in args.tools.split(",")]
    options = {
        "system": args.system,
        "model": parse_model(args.model) if args.session else None,
        "agent": args.agent if args.session else None,
        "tools": None if selected is None else [name for name in selected if name],
        "schema": None if args.schema is None else _read_schema(Path(args.schema)),
    }
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return PromptOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"--{first['loc'][0]}: {first['msg']}") from error


def _read_schema(file: Path) -> object:
    try:
        return json.loads(file.read_text())
    except OSError as error:
        raise UsageError(f"--schema {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--schema {file}: not JSON: {error}") from error


def parse_model(text: str | None) -> ModelRef | None:
    """`provider/model` as a reference. Raises UsageError."""
    if text is None:
        return None
    provider_id, slash, model_id = text.partition("/")
    if not (provider_id and slash and model_id):
        raise UsageError(f"--model {text}: write it as PROVIDER/MODEL, for example sim/fast")
    return ModelRef(provider_id=provider_id, id=model_id)


class AnswerPrinter:
    """Prints the pieces of an answer as running text, with notes between them."""

    def __init__(self, out: Console, notes: Console) -> None:
        self._out = out
        self._notes = notes
        self._mid_line = False
        self._kind = ""

    def show(self, piece: AnswerPiece) -> None:
        """Print one piece without waiting for the next."""
        # The text may begin before the log has the end of the reasoning.
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


async def _prompt(args: argparse.Namespace, options: PromptOptions) -> int:
    model = parse_model(args.model)
    async with open_client(http_url(args), http_token(args)) as client:
        session_id = args.session or (await client.create(agent=args.agent, model=model)).id
        outcome, message_id = await _send_and_follow(client, session_id, args, options)
    if args.json:
        stdout_console().print(
            json.dumps({"session": session_id, "message": message_id, **_outcome_fields(outcome)}),
            markup=False,
            soft_wrap=True,
        )
    if isinstance(outcome, AnswerFailed):
        raise CommandError(f"the step failed: {outcome.message} (fairlead tail {session_id})")
    if not args.json:
        if outcome.output is not None and not outcome.text:
            # A call gave the answer, so no text was printed.
            stdout_console().print(json.dumps(outcome.output), markup=False, soft_wrap=True)
        again = f'fairlead prompt --session {session_id} "…"'
        stderr_console().print(f"\n{again}", style="dim", markup=False, soft_wrap=True)
    return 0


async def _send_and_follow(
    client: Client, session_id: str, args: argparse.Namespace, options: PromptOptions
) -> tuple[AnswerOutcome, str]:
    receipt = await client.prompt(session_id, args.text, options=options)
    page = AnswerPrinter(stdout_console(), stderr_console())
    outcome = await follow_answer(client, receipt, _show_nothing if args.json else page.show)
    return outcome, receipt.id


def _show_nothing(_piece: AnswerPiece) -> None:
    pass


def _outcome_fields(outcome: AnswerOutcome) -> dict[str, object]:
    match outcome:
        case AnswerFinished(text, finish, cost, tokens, output):
            given = {} if output is None else {"output": output}
            return {"text": text, "finish": finish, "cost": cost, "tokens": tokens, **given}
        case AnswerFailed(message):
            return {"error": message}
