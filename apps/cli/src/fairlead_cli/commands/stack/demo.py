"""`fairlead demo`: starts a stack, runs one prompt, shows its answer, log and receipt, and stops."""

import argparse
import asyncio
import logging
import os
import secrets
import signal
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape

from fairlead_cli.commands.session.tail import summarise_data
from fairlead_cli.embedded.running_stack import RunningStack
from fairlead_cli.embedded.stack import Stack
from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import open_client
from fairlead_cli.local_stack.stack_plan import StackPlan
from fairlead_cli.prompts.answer import follow_answer
from fairlead_cli.prompts.answer_printer import AnswerPrinter
from fairlead_cli.terminal import ConsoleLogHandler, shorten, stdout_console, table
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.local_stack import Gateway
from fairlead_schema.prompt import Receipt
from fairlead_schema.session_info import SessionInfo

QUESTION: Final = "Why does a log make an agent session durable?"
ANSWER: Final = (
    "Because every fact is appended before anything acts on it: the prompt, the model's words, the"
    " result of each tool. A process that reads the log again, on any machine, has the same session"
    " and continues it."
)
# The directive makes the simulated model give this answer at the pace of a real model.
PROMPT: Final = f'{QUESTION} [[sim: delay_ms=30 chunks=40 answer="{ANSWER}"]]'


def run(args: argparse.Namespace) -> int:
    """Run the demo in a temporary directory, and leave nothing behind."""
    out = stdout_console()
    logging.getLogger("fairlead_cli").addHandler(ConsoleLogHandler(out))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairlead-demo-") as temporary:
        root = Path(temporary)
        # Postgres may run as another user, who must be able to enter the directory.
        root.chmod(0o755)
        workspace = root / "workspace"
        workspace.mkdir()
        plan = StackPlan(root / "state", sim=True, solo=args.solo, port=0, cwd=workspace)
        asyncio.run(_demo(out, plan))
    out.print(f"\n[green]Done[/] in {time.monotonic() - start:.1f} s. Everything is stopped.")
    out.print("Next: [bold]fairlead up[/], then [bold]fairlead prompt[/] in another terminal.")
    return 0


async def _demo(out: Console, plan: StackPlan) -> None:
    services = "six services in one process" if plan.solo else "six services"
    _print_title(out, f"A whole stack here: NATS, Postgres, {services}, a simulated model")
    start = time.monotonic()
    # SIGTERM ends the demo as Ctrl-C does, so that nothing stays behind.
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, os.kill, os.getpid(), signal.SIGINT)
    stack = Stack(plan, progress=lambda line: out.print(f"  [dim]{escape(line)}[/]"))
    async with stack.run() as running, open_client(Gateway(running.http, running.token)) as client:
        _show_processes(out, running, time.monotonic() - start)
        session = await client.create()
        receipt = await _prompt_and_show_answer(out, client, session)
        await _show_log(out, client, session)
        await _show_read_model(out, client, session)
        await _show_retry(out, client, receipt)
        _print_title(out, "Stop: services first, then Postgres and NATS")


def _print_title(out: Console, text: str) -> None:
    out.print(f"\n[bold cyan]»[/] [bold]{escape(text)}[/]")


def _show_processes(out: Console, running: RunningStack, took_s: float) -> None:
    for process in running.processes:
        out.print(f"  {process.name:<10} [dim]pid {process.pid}[/]")
    out.print(f"  ready in {took_s:.1f} s: [bold]{running.http}[/]")


async def _prompt_and_show_answer(
    out: Console, client: AsyncFairlead, session: SessionInfo
) -> Receipt:
    _print_title(out, "A prompt: admitted durably, once; the answer streams in")
    out.print(f"  [dim]session[/] {session.id}\n  [dim]you[/]     {escape(QUESTION)}\n")
    # A retry is recognised by the message id of the caller.
    message_id = f"msg_demo_{secrets.token_hex(8)}"
    receipt = await client.prompt(session.id, PROMPT, id=message_id)
    await follow_answer(client, receipt, AnswerPrinter(out, out).show)
    return receipt


async def _show_log(out: Console, client: AsyncFairlead, session: SessionInfo) -> None:
    _print_title(out, "The log: every event of the session, in order")
    grid = table("SEQ", "TYPE", "DATA")
    async for event in client.events(session.id):
        data = escape(summarise_data(event.data, 60))
        grid.add_row(str(event.seq), escape(event.type), data)
    out.print(grid)
    out.print("[dim]Gaps in the sequence are private events: who owns the session, attempts.[/]")


async def _show_read_model(out: Console, client: AsyncFairlead, session: SessionInfo) -> None:
    _print_title(out, "The read model: the session as Postgres has it")
    info = await client.get(session.id)
    tokens = info.tokens
    out.print(f"  title {escape(info.title)!r}, cost ${info.cost:.6f}", soft_wrap=True)
    out.print(f"  tokens: {tokens.input} in, {tokens.output} out")
    grid = table("MESSAGE", "TYPE", "TEXT")
    async for message in client.messages(session.id):
        parts = [part.get("text", part["type"]) for part in message.get("content", ())]
        text = message.get("text") or " ".join(parts)
        grid.add_row(message["id"], message["type"], escape(shorten(text, 50)))
    out.print(grid)


async def _show_retry(out: Console, client: AsyncFairlead, receipt: Receipt) -> None:
    _print_title(out, "The same prompt again, as after a lost response: the same receipt")
    again = await client.prompt(receipt.session_id, PROMPT, id=receipt.id)
    same = (again.id, again.admitted_seq) == (receipt.id, receipt.admitted_seq)
    for name, answer_receipt in (("first", receipt), ("retry", again)):
        out.print(f"  {name}  {answer_receipt.id}  admitted at seq {answer_receipt.admitted_seq}")
    if not same:
        raise CommandError("the retry got another receipt: please report this")
