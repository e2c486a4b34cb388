"""`fairlead restore`: bring a backup into an empty deployment, or into a new local state."""

import argparse
import asyncio

from fairlead_cli.backup.directory import verify_directory
from fairlead_cli.backup.manifest import Manifest
from fairlead_cli.command_line.module_loader import keep_modules
from fairlead_cli.json_output import print_json
from fairlead_cli.terminal import stderr_console, stdout_console


def run(args: argparse.Namespace) -> int:
    """Verify the whole backup, then restore it, then begin another incarnation of the log."""
    notes = stderr_console()

    def progress(line: str) -> None:
        if not args.json:
            notes.print(line, style="dim", markup=False, soft_wrap=True)

    manifest = verify_directory(args.directory, progress)
    if args.check:
        return _report(args, manifest, None)
    with keep_modules():
        from fairlead_cli.backup.restore_target import restore_deployment  # noqa: PLC0415
    begun = asyncio.run(restore_deployment(args, manifest, progress))
    return _report(args, manifest, begun.id)


def _report(args: argparse.Namespace, manifest: Manifest, begun: str | None) -> int:
    if args.json:
        print_json({"id": manifest.id, "commits": manifest.commits, "incarnation": begun})
        return 0
    done = (
        "is whole"
        if begun is None
        else f"is restored as incarnation {begun}: start the services, and run `fairlead verify`"
    )
    stdout_console().print(
        f"backup {manifest.id} of {manifest.began} with {manifest.commits} commits {done}",
        markup=False,
        soft_wrap=True,
    )
    return 0
