"""`fairlead undo`: take the last prompt back, with its answer and the files that it changed."""

import argparse

from fairlead_cli.boundaries import undo_boundary
from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import run_with_client
from fairlead_cli.reverts import report_revert
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.session_values.revert_state import RevertState


def run(args: argparse.Namespace) -> int:
    async def undo(client: AsyncFairlead) -> RevertState:
        staged = (await client.get(args.session)).revert
        messages = await client.active_messages(args.session)
        boundary = undo_boundary(messages, staged)
        if boundary is None:
            raise CommandError("there is nothing to undo")
        return await client.stage_revert(
            args.session, boundary.message_id, files=not args.keep_files, before=boundary.before
        )

    return report_revert(args, run_with_client(args, undo))
