"""`fairlead demo`: a whole stack for a moment; one prompt, its answer, its log, its receipt."""

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

from fairlead_cli.answer import Failed, follow
from fairlead_cli.client import Client, connected
from fairlead_cli.commands.prompt import Page
from fairlead_cli.commands.tail import digest
from fairlead_cli.embedded.stack import Plan, Running, Stack
from fairlead_cli.errors import CommandError
from fairlead_cli.terminal import Remarks, answers, shorten, table
from fairlead_schema.prompt import Receipt
from fairlead_schema.public_events import PREFIX, EventEnvelope
from fairlead_schema.session_info import SessionInfo

QUESTION: Final = "Why does a log make an agent session durable?"
ANSWER: Final = (
    "Because every fact is appended before anything acts on it: what was admitted, what the model"
    " said, what a tool did. Whoever reads the log again, on any machine, has the same session and"
    " goes on from there."
)
# The simulated model says what the prompt scripts, at the pace of a real one.
PROMPT: Final = f'{QUESTION} [[sim: delay_ms=30 chunks=40 answer="{ANSWER}"]]'


def configure(_parser: argparse.ArgumentParser) -> None:
    """It has no options: it is the same everywhere."""


def run(_args: argparse.Namespace) -> int:
    """Show it all, leave nothing behind."""
    out = answers()
    logging.getLogger("fairlead_cli").addHandler(Remarks(out))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fairlead-demo-") as temporary:
        root = Path(temporary)
        # Postgres may run as another user than we do.
        root.chmod(0o755)
        workspace = root / "workspace"
        workspace.mkdir()
        asyncio.run(_demo(out, Plan(root / "state", sim=True, port=0, cwd=workspace)))
    out.print(f"\n[green]Done[/] in {time.monotonic() - began:.1f} s. Everything is stopped.")
    out.print("Next: [bold]fairlead up[/], then [bold]fairlead prompt[/] in another terminal.")
    return 0


async def _demo(out: Console, plan: Plan) -> None:
    _title(out, "A whole stack here: NATS, Postgres, five services, a simulated model")
    began = time.monotonic()
    # A polite kill ends it as Ctrl-C does: nothing stays behind.
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, os.kill, os.getpid(), signal.SIGINT)
    stack = Stack(plan, progress=lambda line: out.print(f"  [dim]{escape(line)}[/]"))
    async with stack.run() as running, connected(running.http) as client:
        _processes(out, running, time.monotonic() - began)
        session = await client.create()
        receipt = await _answer(out, client, session)
        await _log(out, client, session)
        await _read_model(out, client, session)
        await _retry(out, client, receipt)
        _title(out, "Stop: services first, then Postgres and NATS")


def _title(out: Console, text: str) -> None:
    out.print(f"\n[bold cyan]»[/] [bold]{escape(text)}[/]")


def _processes(out: Console, running: Running, took_s: float) -> None:
    for kept in running.processes:
        out.print(f"  {kept.name:<10} [dim]pid {kept.pid}[/]")
    out.print(f"  ready in {took_s:.1f} s: [bold]{running.http}[/]")


async def _answer(out: Console, client: Client, session: SessionInfo) -> Receipt:
    _title(out, "A prompt: admitted durably, once; the answer streams in")
    out.print(f"  [dim]session[/] {session.id}\n  [dim]you[/]     {escape(QUESTION)}\n")
    # A caller's own id is what makes its retry recognisable.
    message_id = f"msg_demo_{secrets.token_hex(8)}"
    receipt = await client.prompt(session.id, PROMPT, message_id=message_id)
    outcome = await follow(client, receipt, Page(out, out).show)
    if isinstance(outcome, Failed):
        raise CommandError(f"the step failed: {outcome.message}")
    return receipt


async def _log(out: Console, client: Client, session: SessionInfo) -> None:
    _title(out, "The log: every fact, in order; the truth")
    shown = table("SEQ", "TYPE", "DATA")
    async for envelope in client.history(session.id):
        shown.add_row(*_row(envelope))
    out.print(shown)
    out.print("[dim]Gaps in the sequence are private events: who owns the session, attempts.[/]")


def _row(envelope: EventEnvelope) -> tuple[str, str, str]:
    seq = envelope.durable.seq if envelope.durable else 0
    return str(seq), escape(envelope.type.removeprefix(PREFIX)), escape(digest(envelope.data, 60))


async def _read_model(out: Console, client: Client, session: SessionInfo) -> None:
    _title(out, "The read model: what the log amounts to, in Postgres")
    stored = await client.session(session.id)
    tokens = stored.tokens
    out.print(f"  title {escape(stored.title)!r}, cost ${stored.cost:.6f}", soft_wrap=True)
    out.print(f"  tokens: {tokens.input} in, {tokens.output} out")
    shown = table("MESSAGE", "TYPE", "TEXT")
    for message in await client.messages(session.id):
        parts = [part.get("text", part["type"]) for part in message.get("content", ())]
        text = message.get("text") or " ".join(parts)
        shown.add_row(message["id"], message["type"], escape(shorten(text, 50)))
    out.print(shown)


async def _retry(out: Console, client: Client, receipt: Receipt) -> None:
    _title(out, "The same prompt again, as after a lost answer: the same receipt")
    again = await client.prompt(receipt.session_id, PROMPT, message_id=receipt.id)
    same = (again.id, again.admitted_seq) == (receipt.id, receipt.admitted_seq)
    for name, shown in (("first", receipt), ("retry", again)):
        out.print(f"  {name}  {shown.id}  admitted at seq {shown.admitted_seq}")
    if not same:
        raise CommandError("the retry got another receipt: please report this")
