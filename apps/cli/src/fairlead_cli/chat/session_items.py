"""Sessions as a person picks them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from fairlead_cli.chat.screen.picker import PickerItem
from fairlead_cli.chat.view.plain_text import one_line
from fairlead_cli.chat.view.status_line import money
from fairlead_schema.session_info import SessionInfo


def session_items(sessions: Sequence[SessionInfo]) -> list[PickerItem]:
    """Sessions without those of sub-agents, the last changed first."""
    own = [session for session in sessions if session.parent_id is None]
    own.sort(key=lambda session: session.time.updated, reverse=True)
    return [_item(session) for session in own]


def _item(session: SessionInfo) -> PickerItem:
    changed = datetime.fromtimestamp(session.time.updated / 1000, UTC).astimezone()
    note = f"{changed:%d %b %H:%M}  {money(session.cost)}  {session.location.directory}"
    return PickerItem(session.id, one_line(session.title, 60), note)
