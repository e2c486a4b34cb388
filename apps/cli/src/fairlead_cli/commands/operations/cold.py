"""`fairlead cold`: move sessions that nobody needs every day into files, and bring them back."""

import argparse
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from fairlead_cli.cold.files import file_paths, list_files
from fairlead_cli.cold.sessions import SessionRequests
from fairlead_cli.cold.transcript import describe_messages, read_transcripts
from fairlead_cli.cold.trees import MovedSession, restore_tree, store_tree
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.exports.export_file import verify_file
from fairlead_cli.gateway import run_with_connection
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stdout_console, table
from fairlead_client.async_client.http_connection import AsyncHttpConnection
from fairlead_client.prompt_input import session_id_of
from fairlead_schema.errors import Conflict
from fairlead_schema.ids import SessionId

DAY_MS = 24 * 3600 * 1000


def run(args: argparse.Namespace) -> int:
    actions = {
        "store": _store,
        "restore": _restore,
        "list": _list,
        "verify": _verify,
        "show": _show,
    }
    return actions[args.action](args)


def _store(args: argparse.Namespace) -> int:
    if (args.session is None) == (args.older_than is None):
        raise UsageError("name one session, or say --older-than 90d")

    async def store(connection: AsyncHttpConnection) -> None:
        requests = SessionRequests(connection, wait_s=args.wait)
        async for root in _choose_sessions(args, requests):
            if args.dry_run:
                _say(args, f"{root} would be stored", session=root, state="chosen")
                continue
            try:
                moved = await store_tree(requests, root, args.to)
            except Conflict as refusal:
                if args.session is not None:
                    raise
                _say(
                    args,
                    f"{root} stays: {refusal}",
                    session=root,
                    state="left",
                    reason=str(refusal),
                )
                continue
            for one in moved:
                _tell(args, one, "stored" if one.moved else "was stored already")

    run_with_connection(args, store)
    return 0


async def _choose_sessions(
    args: argparse.Namespace, requests: SessionRequests
) -> AsyncIterator[SessionId]:
    if args.session is not None:
        yield session_id_of(args.session)
        return
    before = int(time.time() * 1000) - args.older_than * DAY_MS
    # All pages are read before the first session leaves: the pages follow the read models.
    for session_id in [session.id async for session in requests.roots(before=before)]:
        yield session_id


def _restore(args: argparse.Namespace) -> int:
    session_id = session_id_of(args.session)

    async def restore(connection: AsyncHttpConnection) -> list[MovedSession]:
        requests = SessionRequests(connection, wait_s=args.wait)
        return await restore_tree(requests, session_id, args.source)

    moved = run_with_connection(args, restore)
    for one in moved:
        _tell(args, one, "restored")
    if not moved:
        _say(args, f"{session_id} is not stored: nothing to do", session=session_id, state="here")
    return 0


def _list(args: argparse.Namespace) -> int:
    files = list(list_files(args.directory))
    if args.json:
        for one in files:
            print_json({**one._asdict(), "path": str(one.path)})
        return 0
    grid = table("SESSION", "TENANT", "EVENTS", "BYTES", "EXPORTED", "FILE")
    for one in files:
        at = datetime.fromtimestamp(one.exported_at / 1000, UTC).astimezone()
        grid.add_row(
            one.session_id,
            one.tenant,
            str(one.events),
            str(one.bytes),
            f"{at:%Y-%m-%d %H:%M}",
            one.path.name,
        )
    stdout_console().print(grid)
    return 0


def _verify(args: argparse.Namespace) -> int:
    """Exit code 1 says that a file cannot be used."""
    broken = 0
    for path in file_paths(args.directory):
        try:
            summary = verify_file(path)
        except CommandError as error:
            broken += 1
            _say(args, str(error), file=path.name, error=str(error))
        else:
            events = sum(session.seq for session in summary.sessions.values())
            _say(args, f"{path.name}: {events} events, verified", file=path.name, events=events)
    return 1 if broken else 0


def _show(args: argparse.Namespace) -> int:
    for session_id, messages in read_transcripts(args.file):
        if args.json:
            print_json({"session": session_id, "messages": [one.wire() for one in messages]})
            continue
        out = stdout_console()
        out.print(f"{session_id}: {len(messages)} messages\n", markup=False)
        for line in describe_messages(messages):
            out.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def _tell(args: argparse.Namespace, moved: MovedSession, what: str) -> None:
    text = f"{moved.session_id} {what}: {moved.file.path}"
    stored = moved.file.stored
    _say(
        args,
        text,
        session=moved.session_id,
        state=what,
        file=str(moved.file.path),
        events=stored.seq,
        bytes=stored.bytes,
    )


def _say(args: argparse.Namespace, line: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON
    if args.json:
        print_json(fields)
    else:
        stdout_console().print(line, markup=False, soft_wrap=True)
