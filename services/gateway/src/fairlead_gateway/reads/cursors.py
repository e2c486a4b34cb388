"""Opaque cursors: the place where a page begins, and the query that the page belongs to."""

import base64
import binascii
from typing import Self

from pydantic import ConfigDict, Field, ValidationError

from fairlead_gateway.http.request_parser import Text
from fairlead_gateway.reads.read_model import ArchivedFilter, Direction, Order
from fairlead_schema.errors import InvalidCursor
from fairlead_schema.ids import MessageId, SessionId
from fairlead_schema.model import Model

CURSOR_LENGTH_MAX = 16 * 1024
SESSIONS_MAX = 1000
MESSAGES_MAX = 200
TIME_MAX = 2**53 - 1


class _Cursor(Model):
    model_config = ConfigDict(extra="forbid", strict=True)

    def encode(self) -> str:
        """The cursor for clients: base64url of JSON, without padding."""
        text = self.model_dump_json(by_alias=True, exclude_none=True)
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> Self:
        """Parse a cursor. Raises InvalidCursor."""
        if len(text) > CURSOR_LENGTH_MAX:
            raise InvalidCursor
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            return cls.model_validate_json(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (UnicodeEncodeError, binascii.Error, ValidationError) as error:
            raise InvalidCursor from error


class MessageCursor(_Cursor):
    """The message at an end of a page, and the direction to continue from there."""

    session: SessionId
    id: MessageId
    order: Order
    direction: Direction
    limit: int = Field(ge=1, le=MESSAGES_MAX)


class CursorAnchor(Model):
    """The session at an end of a page, and the direction to continue from there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: SessionId
    time: int = Field(ge=0, le=TIME_MAX)
    direction: Direction


class SessionListing(_Cursor):
    """One listing of sessions: its filters, its order, its page size."""

    workspace: Text | None = None
    directory: Text | None = None
    project: Text | None = None
    search: Text | None = None
    subpath: Text | None = None
    parent: SessionId | None = None
    roots: bool | None = None
    archived: ArchivedFilter = "hide"
    order: Order
    limit: int = Field(ge=1, le=SESSIONS_MAX)


class SessionCursor(SessionListing):
    """A session listing, and the place in it where a page begins."""

    anchor: CursorAnchor
