"""Sessions as a person picks them."""

from datetime import UTC, datetime
from typing import Final

from fairlead_cli.chat.screen.picker import PickerItem
from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.chat.view.status_line import money
from fairlead_client import AsyncFairlead
from fairlead_client.answers.answer_models import data_of, read_each
from fairlead_schema.session_info import SessionInfo

LISTED_MAX: Final = 200
"""So many of the newest sessions are listed. Earlier ones are found by their titles."""


async def list_sessions(fairlead: AsyncFairlead, *, search: str = "") -> list[PickerItem]:
    """Sessions without those of sub-agents, the last changed first. `search` is a part of their titles."""
    params = {"limit": LISTED_MAX, "roots": "true"} | ({"search": search} if search else {})
    page = await fairlead.request("GET", "/api/session", params=params)
    sessions = read_each(SessionInfo, data_of(page))
    sessions.sort(key=lambda session: session.time.updated, reverse=True)
    return [_item(session) for session in sessions]


def _item(session: SessionInfo) -> PickerItem:
    changed = datetime.fromtimestamp(session.time.updated / 1000, UTC).astimezone()
    note = f"{changed:%d %b %H:%M}  {money(session.cost)}  {session.location.directory}"
    return PickerItem(session.id, one_line(session.title, 60), note)
