"""`fairlead tail`: the events of a session, from the beginning or after a sequence number."""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console

from fairlead_cli.addresses import add_http, http_token, http_url
from fairlead_cli.client import Client, open_client
from fairlead_cli.terminal import shorten, stdout_console
from fairlead_schema.public_events import PREFIX, EventEnvelope

_HIDDEN: Final = frozenset({"timestamp", "sessionID"})


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION")
    add("--after", type=int, default=0, metavar="N", help="only events after this sequence")
    add(
        "--follow",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="wait for new events (default), or stop at the last one",
    )
    add("--json", action="store_true", help="one event per line, as clients get it")
    add_http(parser)


def run(args: argparse.Namespace) -> int:
    asyncio.run(_tail(args))
    return 0


def summarise_data(data: dict[str, Any], length: int = 80) -> str:
    """The data of an event on one line, without the fields that every event has."""
    keys = [key for key in data if key not in _HIDDEN]
    # Ids come last, because they are long and few readers need them.
    keys.sort(key=lambda key: key.endswith("ID"))
    return shorten(" ".join(f"{key}={_brief(data[key])}" for key in keys), length)


async def _tail(args: argparse.Namespace) -> None:
    out = stdout_console()
    async with open_client(http_url(args), http_token(args)) as client:
        history = client.history(args.session, after=args.after)
        source = _follow_events(client, args) if args.follow else history
        async with aclosing(source) as envelopes:
            async for envelope in envelopes:
                _show(out, envelope, as_json=args.json)


async def _follow_events(
    client: Client, args: argparse.Namespace
) -> AsyncGenerator[EventEnvelope, None]:
    async with aclosing(client.follow(args.session, after=args.after)) as stream:
        async for event in stream:
            yield EventEnvelope.model_validate_json(event.data)


def _show(out: Console, envelope: EventEnvelope, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(envelope.model_dump_json(by_alias=True, exclude_none=True) + "\n")
        sys.stdout.flush()
        return
    seq = envelope.durable.seq if envelope.durable else ""
    time = datetime.fromtimestamp(envelope.data.get("timestamp", 0) / 1000, UTC).astimezone()
    type_ = envelope.type.removeprefix(PREFIX)
    line = f"{seq:>5}  {time:%H:%M:%S}  {type_:<22} {summarise_data(envelope.data, out.width - 42)}"
    out.print(line, markup=False, no_wrap=True, overflow="ellipsis")


def _brief(value: object) -> str:
    if isinstance(value, dict) and "text" in value:
        return repr(shorten(str(value["text"]), 60))
    return repr(shorten(value, 60)) if isinstance(value, str) else shorten(str(value), 60)
