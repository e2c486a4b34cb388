"""Connects to the server, and starts the application."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from fairlead_cli.chat.chat_start import ChatStart, ServerOffer, read_offer
from fairlead_cli.chat.gathered_http import open_gathered_http
from fairlead_cli.chat.history_file import history_path
from fairlead_cli.chat.screen.app import ChatApp
from fairlead_cli.chat.session_items import list_sessions
from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import explain_errors, gateway_of
from fairlead_cli.options.session import PICK
from fairlead_client import AsyncFairlead
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.async_client.http_transport import AsyncHttpTransport
from fairlead_client.local_stack import local_url
from fairlead_schema.ids import SessionId

LATEST: Final = "latest"
FIRST_ANSWER_S: Final = 3.0
"""How long the first requests wait for a server. Later ones are patient."""
PATIENCE_S: Final = 30.0


class ChatEnd(NamedTuple):
    """Which session was shown last, and the exit code."""

    session_id: SessionId | None
    exit_code: int


async def launch_chat(args: argparse.Namespace, *, on_screen: Callable[[], None]) -> ChatEnd:
    """Run the application until a person leaves.

    `on_screen` is called once the server has answered and the screen is about to open.
    """
    gateway = gateway_of(args)
    if args.token_file is not None:
        gateway = gateway._replace(token=args.token_file)
    connection = AsyncHttpConnection(
        gateway.url,
        gateway.token,
        patience_s=FIRST_ANSWER_S,
        http=open_gathered_http(gateway.url),
    )
    async with AsyncFairlead(transport=AsyncHttpTransport(connection)) as fairlead:
        is_local = gateway.url == local_url(args.state)
        with explain_errors(gateway.url):
            offer = await read_offer(fairlead)
            first = await _find_session(fairlead, args.resume)
        connection.patience_s = PATIENCE_S
        start = choose_start(args, offer, is_local=is_local)
        app = ChatApp(fairlead, connection, start, offer, history_path())
        app.first_session, app.first_prompt = first, args.prompt
        app.picks_first = args.resume == PICK
        on_screen()
        session_id = await app.run_async()
        return ChatEnd(session_id, app.return_code or 0)


def choose_start(args: argparse.Namespace, offer: ServerOffer, *, is_local: bool) -> ChatStart:
    """What new sessions begin with. A stack on this machine works where the person is."""
    if args.model and args.model not in offer.windows:
        known = ", ".join(offer.windows) or "none"
        raise CommandError(f"there is no model {args.model}: the server has {known}")
    agents = [agent["id"] for agent in offer.agents]
    if args.agent and args.agent not in agents:
        raise CommandError(f"there is no agent {args.agent}: the server has {', '.join(agents)}")
    here = str(Path(args.directory or ".").resolve()) if args.directory or is_local else None
    return ChatStart(args.agent, args.model, here)


async def _find_session(fairlead: AsyncFairlead, resume: str | None) -> SessionId | None:
    if resume is None or resume == PICK:
        return None
    if resume != LATEST:
        return (await fairlead.get(resume)).id
    items = await list_sessions(fairlead)
    if not items:
        raise CommandError("there is no session yet: start one with `fairlead chat`")
    return items[0].id
