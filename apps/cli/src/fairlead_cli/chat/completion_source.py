"""Finds the ways to complete a word: commands at once, files from the server."""

from fairlead_cli.chat.chat_start import ServerOffer
from fairlead_cli.chat.session_link import SessionLink
from fairlead_cli.chat.view.completion import (
    CHOICES_MAX,
    CompletionChoice,
    CompletionTarget,
    command_choices,
    file_choice,
)
from fairlead_client import ClientError, Refused


async def find_choices(
    link: SessionLink, offer: ServerOffer, target: CompletionTarget
) -> list[CompletionChoice]:
    """The choices for a word. A server that does not answer has none."""
    if target.kind == "command":
        return command_choices(target.query, offer.commands)
    directory = link.view.directory or link.start.directory
    try:
        if target.query:
            paths = await link.fairlead.find_files(
                target.query, directory=directory, limit=CHOICES_MAX
            )
        else:
            entries = await link.fairlead.list_files(directory=directory)
            paths = [entry["path"] for entry in entries[:CHOICES_MAX]]
    except (Refused, ClientError):
        return []
    return [file_choice(path) for path in paths]
