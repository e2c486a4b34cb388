"""Finds the ways to complete a word: commands at once, files from the server."""

from typing import Any, Final

from fairlead_cli.chat.chat_start import ServerOffer
from fairlead_cli.chat.session_link import SessionLink
from fairlead_cli.chat.view.completion import (
    CHOICES_MAX,
    CompletionChoice,
    CompletionTarget,
    agent_choices,
    command_choices,
    file_choice,
)
from fairlead_client import ClientError, Refused
from fairlead_client.answers.answer_models import list_of

FOUND_MAX: Final = 20
"""More than are shown: some names cannot be mentioned."""


async def find_choices(
    link: SessionLink, offer: ServerOffer, target: CompletionTarget
) -> list[CompletionChoice]:
    """The choices for a word. A server that does not answer has none."""
    if target.kind == "command":
        return command_choices(target.query, offer.commands)
    directory = link.view.directory or link.start.directory
    inside = target.query.endswith("/") or not target.query
    path = "/api/fs/list" if inside else "/api/fs/find"
    params: dict[str, Any] = {} if directory is None else {"location[directory]": directory}
    params |= (
        {"path": target.query or "."} if inside else {"query": target.query, "limit": FOUND_MAX}
    )
    try:
        entries = list_of(await link.fairlead.request("GET", path, params=params))
    except (Refused, ClientError):
        entries = []
    found = (file_choice(entry["path"], is_directory=_is_directory(entry)) for entry in entries)
    choices = [*agent_choices(target.query, offer.subagents), *filter(None, found)]
    return choices[:CHOICES_MAX]


def _is_directory(entry: dict[str, Any]) -> bool:
    return entry.get("type") == "directory"
