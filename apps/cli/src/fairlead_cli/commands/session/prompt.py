"""`fairlead prompt`: send a prompt, print the answer as it comes, exit when it is complete."""

import argparse
import asyncio
import json
from dataclasses import dataclass
from typing import Any

from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import gateway_of, open_client
from fairlead_cli.json_output import print_json
from fairlead_cli.prompts.answer import AnswerPiece, follow_answer
from fairlead_cli.prompts.answer_failure import explain_failure
from fairlead_cli.prompts.answer_printer import AnswerPrinter
from fairlead_cli.prompts.attached_files import read_files, upload_files
from fairlead_cli.prompts.prompt_text import parse_message_id, parse_model, read_options, read_text
from fairlead_cli.terminal import stderr_console, stdout_console
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.errors import ClientError
from fairlead_client.local_stack import Gateway
from fairlead_client.prompt_answer import PromptAnswer
from fairlead_client.prompt_input import PromptFields, session_id_of
from fairlead_schema.catalog import ModelRef
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.prompt import Delivery, PromptOptions, Receipt


@dataclass(frozen=True, slots=True)
class PromptOrder:
    """What the arguments ask for. Everything local is read and checked before anything is sent."""

    text: str
    options: PromptOptions
    files: dict[str, bytes]
    session: SessionId | None
    new_model: ModelRef | None
    new_agent: str | None
    message_id: MessageId | None
    delivery: Delivery
    as_json: bool


def run(args: argparse.Namespace) -> int:
    """Send the prompt. The exit code is 0 when the model has answered."""
    order = PromptOrder(
        text=read_text(args.text),
        options=read_options(args),
        files=read_files(args.file),
        session=args.session,
        new_model=parse_model(args.model),
        new_agent=args.agent,
        message_id=parse_message_id(args.id),
        delivery="queue" if args.queue else "steer",
        as_json=args.json,
    )
    asyncio.run(_prompt(gateway_of(args), order))
    return 0


async def _prompt(gateway: Gateway, order: PromptOrder) -> None:
    page = AnswerPrinter(stdout_console(), stderr_console())
    async with open_client(gateway, page.note) as client:
        session_id = (
            (await client.create(agent=order.new_agent, model=order.new_model)).id
            if order.session is None
            else session_id_of(order.session)
        )
        receipt = await _send(client, session_id, order)
        try:
            answer = await follow_answer(
                client, receipt, _show_nothing if order.as_json else page.show
            )
        except ClientError as error:
            if order.as_json:
                print_json({**_ids(receipt), "error": str(error)})
            raise CommandError(explain_failure(error, session_id)) from error
        except asyncio.CancelledError:
            page.note(
                f"the session goes on: fairlead tail {session_id}"
                f" (fairlead interrupt {session_id} stops it)"
            )
            raise
        finally:
            page.end_line()
    if order.as_json:
        print_json({**_ids(receipt), **answer_fields(answer)})
    else:
        _show_end(answer, session_id)


async def _send(client: AsyncFairlead, session_id: SessionId, order: PromptOrder) -> Receipt:
    fields = PromptFields()
    if order.files:
        fields["files"] = await upload_files(client, session_id, order.files)
    options = order.options
    if options.system is not None:
        fields["system"] = options.system
    if options.model is not None:
        fields["model"] = options.model
    if options.agent is not None:
        fields["agent"] = options.agent
    if options.tools is not None:
        fields["tools"] = options.tools
    return await client.prompt(
        session_id,
        order.text,
        id=order.message_id,
        delivery=order.delivery,
        schema=options.output_schema,
        **fields,
    )


def answer_fields(answer: PromptAnswer) -> dict[str, Any]:
    """An answer for programs."""
    given = {} if answer.value is None else {"output": answer.value}
    return {
        "text": answer.text,
        "finish": answer.finish,
        "cost": answer.cost,
        "tokens": answer.tokens.wire(),
        **given,
    }


def _ids(receipt: Receipt) -> dict[str, str]:
    return {"session": receipt.session_id, "message": receipt.id}


def _show_nothing(_piece: AnswerPiece) -> None:
    pass


def _show_end(answer: PromptAnswer, session_id: SessionId) -> None:
    if answer.value is not None and not answer.text:
        # A call gave the answer, so no text was printed.
        stdout_console().print(json.dumps(answer.value), markup=False, soft_wrap=True)
    again = f'fairlead prompt --session {session_id} "…"'
    stderr_console().print(f"\n{again}", style="dim", markup=False, soft_wrap=True)
