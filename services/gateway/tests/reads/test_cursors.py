"""Cursors survive the round trip, and everything else is refused."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_gateway.reads.cursors import CursorAnchor, MessageCursor, SessionCursor
from fairlead_gateway.reads.read_model import Direction, Order
from fairlead_schema.errors import InvalidCursor

IDS = st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True)
ORDERS = st.sampled_from(["asc", "desc"])
DIRECTIONS = st.sampled_from(["previous", "next"])
TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@given(IDS, IDS, ORDERS, DIRECTIONS, st.integers(1, 200))
def test_a_message_cursor_reads_back_as_it_was_written(
    session: str, message: str, order: Order, direction: Direction, limit: int
) -> None:
    """I-24, Q-10: decided as in the seeds: the session and the page size are inside."""
    cursor = MessageCursor(
        session=f"ses_{session}",
        id=f"msg_{message}",
        order=order,
        direction=direction,
        limit=limit,
    )

    assert MessageCursor.decode(cursor.encode()) == cursor
    assert "=" not in cursor.encode()


@given(IDS, st.integers(0, 2**53 - 1), ORDERS, DIRECTIONS, TEXTS, TEXTS)
def test_i28_a_session_cursor_carries_its_filters(
    session: str,
    time: int,
    order: Order,
    direction: Direction,
    search: str | None,
    directory: str | None,
) -> None:
    anchor = CursorAnchor(id=f"ses{session}", time=time, direction=direction)
    cursor = SessionCursor(search=search, directory=directory, order=order, limit=50, anchor=anchor)

    assert SessionCursor.decode(cursor.encode()) == cursor


@given(st.text(max_size=60))
def test_i23_whatever_is_not_a_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor, match="Invalid cursor"):
        MessageCursor.decode(text)


@pytest.mark.parametrize(
    "change",
    [
        {"limit": 0},
        {"limit": 201},
        {"limit": "50"},
        {"order": "up"},
        {"id": "ses_1"},
        {"session": None},
        {"extra": 1},
    ],
)
def test_a_cursor_that_was_tampered_with_is_refused(change: dict[str, object]) -> None:
    good = {"session": "ses_1", "id": "msg_1", "order": "asc", "direction": "next", "limit": 5}
    text = base64.urlsafe_b64encode(json.dumps(good | change).encode()).decode().rstrip("=")

    with pytest.raises(InvalidCursor):
        MessageCursor.decode(text)
