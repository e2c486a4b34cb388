"""`fairlead redo`: bring back what the last undo took."""

import argparse

from fairlead_cli.boundaries import redo_boundary
from fairlead_cli.errors import CommandError
from fairlead_cli.gateway import run_with_client
from fairlead_cli.reverts import report_revert
from fairlead_client.async_client.client import AsyncFairlead
from fairlead_schema.session_values.revert_state import RevertState


def run(args: argparse.Namespace) -> int:
    async def redo(client: AsyncFairlead) -> RevertState | None:
        staged = (await client.get(args.session)).revert
        if staged is None:
            raise CommandError("there is nothing to redo")
        messages = await client.active_messages(args.session)
        boundary = redo_boundary(messages, staged)
        if boundary is None:
            await client.clear_revert(args.session)
            return None
        return await client.stage_revert(args.session, boundary.message_id, before=boundary.before)

    return report_revert(args, run_with_client(args, redo))
