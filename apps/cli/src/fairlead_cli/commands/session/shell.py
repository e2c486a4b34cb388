"""`fairlead shell`: run a command of your own in a session's location, print its output."""

import argparse
from contextlib import aclosing
from typing import Final

from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import run_with_client
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import note, stderr_console, stdout_console
from fairlead_client.answers.answer_models import data_of, read_as
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.message_ids import mint_message_id
from fairlead_client.prompt_input import session_id_of
from fairlead_schema.commands.input import ShellReceipt

CANCELLED: Final = "input.cancelled"
ENDED: Final = "shell.ended"


def run(args: argparse.Namespace) -> int:
    """Run the command. The exit code is that of the command; 1 if it did not run to its end."""

    async def shell(client: AsyncFairlead) -> tuple[str, int | None, str]:
        body = {"command": args.text, "id": args.id or mint_message_id()}
        path = f"/api/session/{session_id_of(args.session)}/shell"
        answer = await client.request("POST", path, json=body)
        receipt = read_as(ShellReceipt, data_of(answer))
        if not args.json:
            stderr_console().print(f"Requested: {receipt.id}", style="dim", markup=False)
        return (*await follow_shell(client, receipt), receipt.id)

    output, code, message_id = run_with_client(args, shell, note)
    if args.json:
        ids = {"session": args.session, "message": message_id}
        print_json({**ids, "output": output, "exit": code})
    else:
        stdout_console().print(output, markup=False, soft_wrap=True, highlight=False)
    return 1 if code is None else code


async def follow_shell(client: AsyncFairlead, receipt: ShellReceipt) -> tuple[str, int | None]:
    """Wait until a command has ended: its output, and its exit code if it ran to its end."""
    # The live stream also tells that somebody cancelled the command.
    stream = client.follow(receipt.session_id, after=max(receipt.admitted_seq - 1, 0))
    async with aclosing(stream):
        async for event in stream:
            if event.data.get("messageID") != receipt.id:
                continue
            if event.type == CANCELLED:
                raise CommandError("the command was withdrawn before it started")
            if event.type == ENDED:
                return event.data["output"], event.data.get("exit")
    raise CommandError(f"the stream ended before the command (fairlead tail {receipt.session_id})")
