"""`fairlead tail`: the events of a session, from the beginning or after a sequence number."""

import argparse
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console

from fairlead_cli.gateway import run_with_client
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import note, shorten, stdout_console
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_client.received_event import ReceivedEvent
from fairlead_schema.session_values.event_names import NOTICES, PREFIX

_HIDDEN: Final = frozenset({"timestamp", "sessionID"})


def run(args: argparse.Namespace) -> int:
    async def tail(client: AsyncFairlead) -> None:
        out = stdout_console()
        # Only the stream with notices says that somebody erased the session.
        source = (
            client.follow(args.session, after=args.after)
            if args.follow
            else client.events(args.session, after=args.after)
        )
        async with aclosing(source) as events:
            async for event in events:
                if event.is_live or event.type in NOTICES:
                    continue
                if args.json:
                    print_json(envelope(args.session, event))
                else:
                    _show(out, event)

    run_with_client(args, tail, note)
    return 0


def envelope(session_id: str, event: ReceivedEvent) -> dict[str, Any]:
    """A durable event in the form of the API."""
    metadata = {} if event.metadata is None else {"metadata": event.metadata}
    durable = {"aggregateID": session_id, "seq": event.seq, "version": event.version}
    type_ = PREFIX + event.type
    return {"id": event.id, "type": type_, "data": event.data, "durable": durable, **metadata}


def summarise_data(data: dict[str, Any], length: int = 80) -> str:
    """The data of an event on one line, without the fields that every event has."""
    keys = [key for key in data if key not in _HIDDEN]
    # Ids come last, because they are long and few readers need them.
    keys.sort(key=lambda key: key.endswith("ID"))
    return shorten(" ".join(f"{key}={_brief(data[key])}" for key in keys), length)


def _show(out: Console, event: ReceivedEvent) -> None:
    seq = "" if event.seq is None else event.seq
    time = datetime.fromtimestamp(event.data.get("timestamp", 0) / 1000, UTC).astimezone()
    summary = summarise_data(event.data, max(out.width - 42, 20))
    line = f"{seq:>5}  {time:%H:%M:%S}  {event.type:<22} {summary}"
    out.print(line, markup=False, no_wrap=True, overflow="ellipsis")


def _brief(value: object) -> str:
    if isinstance(value, dict) and "text" in value:
        return repr(shorten(str(value["text"]), 60))
    return repr(shorten(value, 60)) if isinstance(value, str) else shorten(str(value), 60)
