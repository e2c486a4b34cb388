"""`fairlead shell`: run a command of your own in a session's location, print its output."""

import argparse
import asyncio
from contextlib import aclosing

from pydantic import ValidationError

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import Client, open_client
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_schema.commands.input import ShellReceipt
from fairlead_schema.events import InputCancelled, ShellEnded
from fairlead_schema.public_events import EventEnvelope, client_type


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("text", metavar="COMMAND", help="the command, quoted as one word")
    parser.add_argument("--id", metavar="MESSAGE", help="message id: a repeated command runs once")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command. The exit code is that of the command; 1 if it did not run to its end."""
    return asyncio.run(_shell(args))


async def _shell(args: argparse.Namespace) -> int:
    async with open_client(http_url(args), http_token(args)) as client:
        receipt = await client.shell(args.session, args.text, message_id=args.id)
        stderr_console().print(f"Requested: {receipt.id}", style="dim", markup=False)
        output, code = await follow_shell(client, receipt)
    stdout_console().print(output, markup=False, soft_wrap=True, highlight=False)
    return 1 if code is None else code


async def follow_shell(client: Client, receipt: ShellReceipt) -> tuple[str, int | None]:
    """Wait until a command has ended: its output, and its exit code if it ran to its end."""
    # The live stream also tells that somebody cancelled the command.
    stream = client.follow(receipt.session_id, after=max(receipt.admitted_seq - 1, 0), live=True)
    async with aclosing(stream):
        async for event in stream:
            try:
                envelope = EventEnvelope.model_validate_json(event.data)
            except ValidationError:
                continue
            if envelope.data.get("messageID") != receipt.id:
                continue
            if envelope.type == InputCancelled.type:
                raise CommandError("the command was withdrawn before it started")
            if envelope.type == client_type(ShellEnded.type):
                return envelope.data["output"], envelope.data.get("exit")
    raise CommandError(f"the stream ended before the command (fairlead tail {receipt.session_id})")
